-- All generators together, 5,000 rows a second: an airline (1,200), an auction house (3,200), smart plugs (400 for CQ4
-- and CQ5, 200 for CQ1 and CQ2, which hold each row in 300 windows). {start} and {end} are filled in.

CREATE STREAM flights (num INT, dest STRING, gate STRING, status STRING, at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'generator', generator = 'airline.flights', seed = 1, rate = 100, start = '{start}', end = '{end}');
CREATE STREAM checkins (flight INT, passenger BIGINT, status STRING, at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'generator', generator = 'airline.checkins', seed = 1, rate = 400, start = '{start}', end = '{end}');
CREATE STREAM baggage (flight INT, area STRING, status STRING, weight_kg DECIMAL(5, 1), at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'generator', generator = 'airline.baggage', seed = 1, rate = 700, start = '{start}', end = '{end}');

CREATE CONTINUOUS QUERY gate_17 AS
  SELECT f.gate, b.status, c.status
  FROM flights f [RANGE 1 MINUTE], baggage b [RANGE 20 SECONDS], checkins c [RANGE 20 SECONDS]
  WHERE f.num = c.flight AND f.num = b.flight AND f.num = 17;
CREATE CONTINUOUS QUERY baggage_by_area AS
  SELECT window_end, area, count(*) AS bags, sum(weight_kg) AS weight_kg, max(weight_kg) AS heaviest_kg
  FROM baggage [RANGE 1 MINUTE SLIDE 20 SECONDS] GROUP BY area;
CREATE CONTINUOUS QUERY delayed AS
  SELECT num, dest, gate, at FROM flights WHERE status = 'delayed';

CREATE STREAM auctions (id BIGINT, seller BIGINT, category INT, at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'generator', generator = 'auctions.auctions', seed = 1, rate = 180, start = '{start}', end = '{end}');
CREATE STREAM bids (auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'generator', generator = 'auctions.bids', seed = 1, rate = 3020, start = '{start}', end = '{end}');

CREATE CONTINUOUS QUERY bidders_by_channel AS
  SELECT window_end, channel, count(DISTINCT bidder) AS bidders, count(*) FILTER (WHERE price >= 150) AS high_bids
  FROM bids [RANGE 1 MINUTE] GROUP BY channel;
CREATE CONTINUOUS QUERY hot_items AS
  SELECT window_end, auction, count(*) AS bids
  FROM bids [RANGE 1 MINUTE SLIDE 30 SECONDS] GROUP BY auction ORDER BY bids DESC, auction LIMIT 3;
CREATE CONTINUOUS QUERY early_bids AS
  SELECT a.id, a.category, b.price
  FROM auctions a [RANGE 30 SECONDS], bids b [RANGE 1 SECOND] WHERE a.id = b.auction AND a.category = 10;
CREATE CONTINUOUS QUERY last_prices AS
  SELECT window_end, count(*) AS bids, avg(price) AS mean_price FROM bids [ROWS 1000 SLIDE 500];

CREATE STREAM measurements (ts TIMESTAMP, value DECIMAL(9, 3), property INT, plug_id INT, household_id INT, house_id INT,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)
  WITH (connector = 'generator', generator = 'smart_plugs.measurements', seed = 1, rate = 400, start = '{start}',
        end = '{end}');
CREATE STREAM few_measurements (ts TIMESTAMP, value DECIMAL(9, 3), property INT, plug_id INT, household_id INT,
  house_id INT, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)
  WITH (connector = 'generator', generator = 'smart_plugs.measurements', seed = 2, rate = 200, start = '{start}',
        end = '{end}');

CREATE CONTINUOUS QUERY cq1 AS
  SELECT m.house_id, m.household_id, m.plug_id, window_end, count(*) AS high_loads
  FROM few_measurements m [RANGE 5 MINUTES SLIDE 1 SECOND]
  JOIN (SELECT house_id, household_id, plug_id, max(value) AS max_load
        FROM few_measurements [RANGE 5 MINUTES SLIDE 1 SECOND] WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS top
    ON m.house_id = top.house_id AND m.household_id = top.household_id AND m.plug_id = top.plug_id
  WHERE m.property = 1 AND m.value > 0.9 * top.max_load
  GROUP BY m.house_id, m.household_id, m.plug_id;
CREATE CONTINUOUS QUERY cq2 AS
  SELECT m.house_id, m.household_id, m.plug_id, window_end, count(*) AS above_average
  FROM few_measurements m [RANGE 5 MINUTES SLIDE 1 SECOND]
  JOIN (SELECT house_id, household_id, plug_id, avg(value) AS average_load
        FROM few_measurements [RANGE 5 MINUTES SLIDE 1 SECOND] WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS usual
    ON m.house_id = usual.house_id AND m.household_id = usual.household_id AND m.plug_id = usual.plug_id
  WHERE m.property = 1 AND m.value > usual.average_load
  GROUP BY m.house_id, m.household_id, m.plug_id;
CREATE CONTINUOUS QUERY cq4 AS
  SELECT l.house_id, window_end, l.mean_load AS mean_5_minutes, s.mean_load AS mean_1_minute
  FROM (SELECT house_id, avg(value) AS mean_load FROM measurements [RANGE 5 MINUTES SLIDE 1 SECOND]
        WHERE property = 1 GROUP BY house_id) AS l
  JOIN (SELECT house_id, avg(value) AS mean_load FROM measurements [RANGE 1 MINUTE SLIDE 1 SECOND]
        WHERE property = 1 GROUP BY house_id) AS s
    ON l.house_id = s.house_id;
CREATE CONTINUOUS QUERY cq5 AS
  SELECT house_id, window_end, max(total_load) AS max_total_load
  FROM (SELECT house_id, household_id, plug_id, sum(value) AS total_load
        FROM measurements [RANGE 5 MINUTES SLIDE 1 SECOND] WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS plugs
  GROUP BY house_id;
