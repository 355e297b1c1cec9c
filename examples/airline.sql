-- The operational information system of an airline: the enterprise workload of the hierarchical paper
-- (Seshadri, Kumar, Cooper, Liu, §2.1 and §4.1).
--
--   plait check    examples/airline.sql
--   plait plan     examples/airline.sql --compare       # gates and terminals share their joins
--   plait plan     examples/airline.sql --format svg > airline.svg
--   plait evaluate examples/airline.sql gate_17
--
-- Rates are those of the paper's Fig. 5 and every update has 100 bytes. The figure states selectivities as updates
-- for each flight or destination, which gives the numbers of distinct values: 1,500 flights updates in 5 minutes, one
-- for each flight, are 1,500 flights; 240 check-ins a minute, two a flight, are 120 flights open for check-in; and so on.
-- The stored data is a tenth of that airline, for eight minutes.

-- Sites: where Spark runs. Links have a bandwidth and a latency and work in both directions; between sites without a
-- link, data goes by way of others.
CREATE SITE atlanta     WITH (cores = 8, bandwidth = '1 Gbps');
CREATE SITE newyork     WITH (cores = 4, bandwidth = '500 Mbps');
CREATE SITE minneapolis WITH (cores = 4, bandwidth = '500 Mbps');
CREATE SITE losangeles  WITH (cores = 2, bandwidth = '200 Mbps');

CREATE LINK atlanta     TO newyork     WITH (bandwidth = '100 Mbps', latency = '20 ms');
CREATE LINK atlanta     TO minneapolis WITH (bandwidth = '100 Mbps', latency = '25 ms');
CREATE LINK minneapolis TO losangeles  WITH (bandwidth = '50 Mbps',  latency = '40 ms');
CREATE LINK newyork     TO minneapolis WITH (bandwidth = '50 Mbps',  latency = '30 ms');

CREATE STREAM flights (
  num          INT,
  carrier_code STRING,
  dest         STRING,
  terminal     STRING,
  gate         STRING,
  status       STRING,
  at           TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'files', path = 'data/airline/flights', format = 'parquet', site = 'atlanta',
        rate = '1500/5 min', row_bytes = 100,
        distinct.num = 1500, distinct.dest = 450, distinct.terminal = 2, distinct.carrier_code = 3);

CREATE STREAM checkins (
  flight    INT,
  passenger BIGINT,
  status    STRING,
  at        TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'files', path = 'data/airline/checkins', format = 'csv', site = 'atlanta',
        rate = '240/min', row_bytes = 100, distinct.flight = 120, distinct.status = 3);

CREATE STREAM baggage (
  flight    INT,
  tag       INT,
  area      STRING,
  status    STRING,
  weight_kg DECIMAL(5, 1),
  at        TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'files', path = 'data/airline/baggage', format = 'parquet', site = 'newyork',
        rate = '500/min', row_bytes = 100, distinct.flight = 125, distinct.area = 4, distinct.status = 4);

CREATE STREAM weather (
  city     STRING,
  forecast STRING,
  celsius  INT,
  at       TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 30 SECONDS
) WITH (connector = 'files', path = 'data/airline/weather', format = 'json', site = 'minneapolis',
        rate = '450/5 min', row_bytes = 100, distinct.city = 450, distinct.forecast = 5);

CREATE STREAM sales (
  dest    STRING,
  channel STRING,
  seats   INT,
  fare    DECIMAL(8, 2),
  at      TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'files', path = 'data/airline/sales', format = 'csv', site = 'losangeles',
        rate = '70/min', row_bytes = 100, distinct.dest = 70, distinct.channel = 3);

-- Gate agents: 80 percent of the paper's workload, one template, the flight's number differs. A join gives each
-- combination once, when the last of its rows comes, so that the template's SLIDE of a minute has no place in it.
CREATE CONTINUOUS QUERY gate_12 AT newyork AS
  SELECT fl.gate, bg.status, ci.status
  FROM flights fl [RANGE 5 MINUTES], baggage bg [RANGE 1 MINUTE], checkins ci [RANGE 1 MINUTE]
  WHERE fl.num = ci.flight AND fl.num = bg.flight AND fl.num = 12;

CREATE CONTINUOUS QUERY gate_17 AT newyork AS
  SELECT fl.gate, bg.status, ci.status
  FROM flights fl [RANGE 5 MINUTES], baggage bg [RANGE 1 MINUTE], checkins ci [RANGE 1 MINUTE]
  WHERE fl.num = ci.flight AND fl.num = bg.flight AND fl.num = 17;

CREATE CONTINUOUS QUERY gate_20 AT losangeles AS
  SELECT fl.gate, bg.status, ci.status
  FROM flights fl [RANGE 5 MINUTES], baggage bg [RANGE 1 MINUTE], checkins ci [RANGE 1 MINUTE]
  WHERE fl.num = ci.flight AND fl.num = bg.flight AND fl.num = 20;

-- Another team wrote the query of gate 17 once more, its own way. It is the same stream, and the plan computes it once.
CREATE CONTINUOUS QUERY gate_17_display AT newyork AS
  SELECT f.gate, b.status, c.status
  FROM checkins c [RANGE 60 SECONDS]
  JOIN flights f [RANGE 5 MINUTES] ON c.flight = f.num
  JOIN baggage b [RANGE 60 SECONDS] ON b.flight = c.flight
  WHERE 17 = b.flight;

-- Overhead displays in the terminals: 15 percent.
CREATE CONTINUOUS QUERY terminal_s AT atlanta AS
  SELECT fl.num, fl.gate, bg.area, ci.status, wr.forecast
  FROM flights fl [RANGE 5 MINUTES], weather wr [RANGE 5 MINUTES],
       checkins ci [RANGE 1 MINUTE], baggage bg [RANGE 1 MINUTE]
  WHERE fl.dest = wr.city AND fl.num = ci.flight AND fl.num = bg.flight
    AND fl.terminal = 'S' AND fl.carrier_code = 'DL';

CREATE CONTINUOUS QUERY terminal_t AT minneapolis AS
  SELECT fl.num, fl.gate, bg.area, ci.status, wr.forecast
  FROM flights fl [RANGE 5 MINUTES], weather wr [RANGE 5 MINUTES],
       checkins ci [RANGE 1 MINUTE], baggage bg [RANGE 1 MINUTE]
  WHERE fl.dest = wr.city AND fl.num = ci.flight AND fl.num = bg.flight
    AND fl.terminal = 'T' AND fl.carrier_code = 'DL';

-- Long-running monitoring: the last 5 percent, over any combination of the streams, with ranges and slides of one to
-- five minutes.
CREATE CONTINUOUS QUERY bad_weather_ahead AT minneapolis AS
  SELECT fl.num, fl.dest, wr.forecast, wr.celsius
  FROM flights fl [RANGE 5 MINUTES], weather wr [RANGE 3 MINUTES]
  WHERE fl.dest = wr.city AND wr.forecast IN ('storm', 'snow');

CREATE CONTINUOUS QUERY sales_by_destination AT losangeles AS
  SELECT window_end, dest, sum(seats) AS seats, sum(seats * fare) AS revenue
  FROM sales [RANGE 3 MINUTES SLIDE 1 MINUTE]
  GROUP BY dest
  HAVING sum(seats) >= 5;

-- The same windows in the words of the SQL standard's table functions.
CREATE CONTINUOUS QUERY bags_by_carrier AT newyork AS
  SELECT window_end, fl.carrier_code, count(*) AS bags, sum(bg.weight_kg) AS weight_kg
  FROM HOP(TABLE flights, DESCRIPTOR(at), INTERVAL 1 MINUTE, INTERVAL 5 MINUTES) AS fl
  JOIN HOP(TABLE baggage, DESCRIPTOR(at), INTERVAL 1 MINUTE, INTERVAL 2 MINUTES) AS bg ON fl.num = bg.flight
  GROUP BY fl.carrier_code;

-- Passengers who checked in with no bag of their flight seen within a minute: complete once the minute is over.
CREATE CONTINUOUS QUERY no_bags_yet AT atlanta AS
  SELECT ci.flight, ci.passenger, ci.at
  FROM checkins ci [RANGE 1 MINUTE]
  LEFT JOIN baggage bg [RANGE 1 MINUTE] ON ci.flight = bg.flight AND bg.status = 'misrouted'
  WHERE bg.flight IS NULL;

-- Where demand and weather meet: seats sold in five minutes beside the coldest report of the same five minutes.
CREATE CONTINUOUS QUERY cold_demand AT losangeles AS
  SELECT window_end, s.dest, s.seats, w.coldest
  FROM (SELECT dest, sum(seats) AS seats FROM sales [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY dest) AS s
  JOIN (SELECT city, min(celsius) AS coldest FROM weather [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY city) AS w
    ON s.dest = w.city
  WHERE w.coldest < 0;

-- The three busiest flights at the belt, every minute.
CREATE CONTINUOUS QUERY busiest_belts AT newyork AS
  SELECT window_end, flight, count(*) AS bags
  FROM baggage [RANGE 2 MINUTES SLIDE 1 MINUTE]
  GROUP BY flight
  ORDER BY bags DESC, flight
  LIMIT 3;
