-- The auction house of auction.sql as it lives: persons, auctions and bids in Nexmark's proportions of 1 to 3 to 46, made up
-- as time goes by. Bids go to auctions of the last minutes, half of them to hot ones.
--
--   plait run      examples/auction_live.sql --available-now --drain
--   plait evaluate examples/auction_live.sql hot_items               # the same rows, from the definition
--
-- `start` and `end` lie in the past here, so that all is there at once. Leave both out and the streams begin when they are
-- first run and go on with the clock. Other rates: keep the proportions, else some bids have no auction.

CREATE STREAM persons (
  id    BIGINT,
  name  STRING,
  email STRING,
  state STRING,
  at    TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'generator', generator = 'auctions.persons', seed = 7, rate = 0.5,
        start = '2026-03-02 06:00:00', end = '2026-03-02 06:05:00', row_bytes = 200, distinct.state = 6);

CREATE STREAM auctions (
  id          BIGINT,
  item        STRING,
  initial_bid DECIMAL(10, 2),
  seller      BIGINT,
  category    INT,
  at          TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'generator', generator = 'auctions.auctions', seed = 7, rate = 1.5,
        start = '2026-03-02 06:00:00', end = '2026-03-02 06:05:00', row_bytes = 500, distinct.category = 5);

CREATE STREAM bids (
  auction BIGINT,
  bidder  BIGINT,
  price   DECIMAL(10, 2),
  channel STRING,
  at      TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'generator', generator = 'auctions.bids', seed = 7, rate = 23,
        start = '2026-03-02 06:00:00', end = '2026-03-02 06:05:00', row_bytes = 100, distinct.channel = 3);

CREATE TABLE categories (
  id   INT,
  name STRING
) WITH (connector = 'files', path = 'data/auction/categories.csv', format = 'csv', rows = 5, distinct.id = 5);

CREATE CONTINUOUS QUERY bids_in_euros AS
  SELECT auction, bidder, CAST(price * 0.908 AS DECIMAL(12, 2)) AS price_eur, at
  FROM bids;

CREATE CONTINUOUS QUERY local_sellers AS
  SELECT p.name, p.state, a.id AS auction, coalesce(p.email, 'no address') AS contact
  FROM auctions a [RANGE 5 MINUTES]
  JOIN persons p [RANGE 5 MINUTES] ON a.seller = p.id
  WHERE p.state IN ('OR', 'ID', 'CA') AND a.category BETWEEN 10 AND 11;

CREATE CONTINUOUS QUERY price_by_category AS
  SELECT window_end, c.name, count(*) AS bids, avg(b.price) AS mean_price
  FROM bids b [RANGE 2 MINUTES SLIDE 1 MINUTE]
  JOIN auctions a [RANGE 4 MINUTES SLIDE 1 MINUTE] ON b.auction = a.id
  JOIN categories c ON a.category = c.id
  GROUP BY c.name
  HAVING count(*) >= 3;

CREATE CONTINUOUS QUERY hot_items AS
  SELECT window.end AS minute, auction, count(*) AS bids
  FROM bids
  GROUP BY window(at, '2 minutes', '1 minute'), auction
  ORDER BY bids DESC, auction
  LIMIT 3;

CREATE CONTINUOUS QUERY recent_prices AS
  SELECT auction, window_end, count(*) AS bids, avg(price) AS mean_price
  FROM bids [PARTITION BY auction ROWS 10 SLIDE 5]
  GROUP BY auction;

CREATE CONTINUOUS QUERY highest_bids AS
  SELECT b.auction, b.bidder, b.price, highest.minute
  FROM bids b [RANGE 1 MINUTE SLIDE 1 MINUTE]
  JOIN (SELECT window_end AS minute, max(price) AS price FROM bids [RANGE 1 MINUTE]) AS highest
    ON b.price = highest.price;

CREATE CONTINUOUS QUERY new_sellers AS
  SELECT window_end, p.id, p.name, count(*) AS auctions
  FROM TUMBLE(TABLE persons, DESCRIPTOR(at), INTERVAL 2 MINUTES) AS p
  JOIN TUMBLE(TABLE auctions, DESCRIPTOR(at), INTERVAL 2 MINUTES) AS a ON p.id = a.seller
  GROUP BY p.id, p.name;

CREATE CONTINUOUS QUERY bidders_by_channel AS
  SELECT window_start AS since, window_end AS until, channel,
         count(DISTINCT bidder) AS bidders,
         count(*) FILTER (WHERE price >= 150) AS high_bids
  FROM bids [RANGE 1 MINUTE]
  GROUP BY channel;

CREATE CONTINUOUS QUERY books_feed AS
  SELECT 'opened' AS what, a.id AS auction, a.initial_bid AS price
  FROM auctions a
  WHERE a.category = 10
  UNION ALL
  SELECT 'bid', a.id, b.price
  FROM auctions a [RANGE 4 MINUTES], bids b [RANGE 1 MINUTE]
  WHERE a.id = b.auction AND a.category = 10;
