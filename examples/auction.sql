-- An auction house: persons sign up, open auctions, place bids. After the Nexmark benchmark (Tucker et al.).
--
--   plait check    examples/auction.sql
--   plait plan     examples/auction.sql
--   plait evaluate examples/auction.sql hot_items
--
-- The streams of Nexmark come as 1 person to 3 auctions to 46 bids; the stored data is ten minutes of a small house.

CREATE STREAM persons (
  id    BIGINT,
  name  STRING,
  email STRING,
  state STRING,
  at    TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'files', path = 'data/auction/persons', format = 'json',
        rate = 20, row_bytes = 200, distinct.id = 100000, distinct.state = 6);

CREATE STREAM auctions (
  id          BIGINT,
  item        STRING,
  initial_bid DECIMAL(10, 2),
  seller      BIGINT,
  category    INT,
  at          TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'files', path = 'data/auction/auctions', format = 'parquet',
        rate = 60, row_bytes = 500, distinct.id = 100000, distinct.seller = 100000, distinct.category = 5);

CREATE STREAM bids (
  auction BIGINT,
  bidder  BIGINT,
  price   DECIMAL(10, 2),
  channel STRING,
  at      TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'files', path = 'data/auction/bids', format = 'parquet',
        rate = 920, row_bytes = 100, distinct.auction = 100000, distinct.bidder = 100000, distinct.channel = 3);

-- A stored table joins freely: it has no window, and is read as it is when a row meets it.
CREATE TABLE categories (
  id   INT,
  name STRING
) WITH (connector = 'files', path = 'data/auction/categories.csv', format = 'csv', rows = 5, distinct.id = 5);

-- Nexmark 1: prices in euros. One stream, no window: every bid gives a row as it comes.
CREATE CONTINUOUS QUERY bids_in_euros AS
  SELECT auction, bidder, CAST(price * 0.908 AS DECIMAL(12, 2)) AS price_eur, at
  FROM bids;

-- Nexmark 2: bids on some auctions only.
CREATE CONTINUOUS QUERY watched_bids AS
  SELECT auction, price FROM bids WHERE auction % 17 = 0 OR auction IN (5, 7);

-- Nexmark 3: who near us sells in category 10 or 11? A seller's sign-up and an auction join if they
-- are less than five minutes apart.
CREATE CONTINUOUS QUERY local_sellers AS
  SELECT p.name, p.state, a.id AS auction, coalesce(p.email, 'no address') AS contact
  FROM auctions a [RANGE 5 MINUTES]
  JOIN persons p [RANGE 5 MINUTES] ON a.seller = p.id
  WHERE p.state IN ('OR', 'ID', 'CA') AND a.category BETWEEN 10 AND 11;

-- Nexmark 4, in the small: the average price bid in each category, by the category's name. Windows that join in an
-- aggregate tick together, here every minute.
CREATE CONTINUOUS QUERY price_by_category AS
  SELECT window_end, c.name, count(*) AS bids, avg(b.price) AS mean_price
  FROM bids b [RANGE 2 MINUTES SLIDE 1 MINUTE]
  JOIN auctions a [RANGE 4 MINUTES SLIDE 1 MINUTE] ON b.auction = a.id
  JOIN categories c ON a.category = c.id
  GROUP BY c.name
  HAVING count(*) >= 3;

-- Nexmark 5: the three auctions with most bids of the last two minutes, every minute. This is Spark's way to write a
-- sliding window; [RANGE 2 MINUTES SLIDE 1 MINUTE] and HOP mean the same here.
CREATE CONTINUOUS QUERY hot_items AS
  SELECT window.end AS minute, auction, count(*) AS bids
  FROM bids
  GROUP BY window(at, '2 minutes', '1 minute'), auction
  ORDER BY bids DESC, auction
  LIMIT 3;

-- Nexmark 6: the average of each auction's last ten bids, at every fifth of them. A window of rows, not of time.
CREATE CONTINUOUS QUERY recent_prices AS
  SELECT auction, window_end, count(*) AS bids, avg(price) AS mean_price
  FROM bids [PARTITION BY auction ROWS 10 SLIDE 5]
  GROUP BY auction;

-- Nexmark 7: the bids with the highest price of each minute.
CREATE CONTINUOUS QUERY highest_bids AS
  SELECT b.auction, b.bidder, b.price, highest.minute
  FROM bids b [RANGE 1 MINUTE SLIDE 1 MINUTE]
  JOIN (SELECT window_end AS minute, max(price) AS price FROM bids [RANGE 1 MINUTE]) AS highest
    ON b.price = highest.price;

-- Nexmark 8: persons who opened an auction in the two minutes in which they signed up.
CREATE CONTINUOUS QUERY new_sellers AS
  SELECT window_end, p.id, p.name, count(*) AS auctions
  FROM TUMBLE(TABLE persons, DESCRIPTOR(at), INTERVAL 2 MINUTES) AS p
  JOIN TUMBLE(TABLE auctions, DESCRIPTOR(at), INTERVAL 2 MINUTES) AS a ON p.id = a.seller
  GROUP BY p.id, p.name;

-- How many different people bid on each channel, and how many of the bids are high ones.
CREATE CONTINUOUS QUERY bidders_by_channel AS
  SELECT window_start AS since, window_end AS until, channel,
         count(DISTINCT bidder) AS bidders,
         count(*) FILTER (WHERE price >= 150) AS high_bids
  FROM bids [RANGE 1 MINUTE]
  GROUP BY channel;

-- A query over another one's result: minutes roll up into five minutes. `window_end` is the end of these five: had
-- the other query a column of that name, it would be that column.
CREATE CONTINUOUS QUERY busiest_channel_minute AS
  SELECT window_end, channel, max(bidders) AS most_bidders
  FROM bidders_by_channel [RANGE 5 MINUTES]
  GROUP BY channel;

-- One feed of everything that happens to category 10.
CREATE CONTINUOUS QUERY books_feed AS
  SELECT 'opened' AS what, a.id AS auction, a.initial_bid AS price
  FROM auctions a
  WHERE a.category = 10
  UNION ALL
  SELECT 'bid', a.id, b.price
  FROM auctions a [RANGE 10 MINUTES], bids b [RANGE 1 MINUTE]
  WHERE a.id = b.auction AND a.category = 10;
