-- The airline of airline.sql as it lives: its five streams are made up as time goes by, at the rates of the hierarchical
-- paper's Fig. 5. Nothing is stored; the same seed gives the same rows whenever they are asked for.
--
--   plait run      examples/airline_live.sql --available-now --drain
--   plait evaluate examples/airline_live.sql gate_17            # the same rows, from the definition
--   plait generate examples/airline_live.sql --output made      # the streams as files
--
-- Here they have a `start` and an `end`, four minutes apart and in the past, so that all is there at once. Leave both out
-- and the streams begin when they are first run, go on with the clock, and resume after a stop:
--
--   plait run      examples/airline_live.sql
--
-- A higher rate is a larger airline, not a busier flight: multiply all five by the same number.

CREATE STREAM flights (
  num          INT,
  carrier_code STRING,
  dest         STRING,
  terminal     STRING,
  gate         STRING,
  status       STRING,
  at           TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'generator', generator = 'airline.flights', seed = 7, rate = '1500/5 min',
        start = '2026-03-02 06:00:00', end = '2026-03-02 06:04:00', row_bytes = 100,
        distinct.num = 1500, distinct.dest = 450, distinct.terminal = 2, distinct.carrier_code = 3);

CREATE STREAM checkins (
  flight    INT,
  passenger BIGINT,
  status    STRING,
  at        TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'generator', generator = 'airline.checkins', seed = 7, rate = '240/min',
        start = '2026-03-02 06:00:00', end = '2026-03-02 06:04:00', row_bytes = 100,
        distinct.flight = 120, distinct.status = 3);

CREATE STREAM baggage (
  flight    INT,
  tag       INT,
  area      STRING,
  status    STRING,
  weight_kg DECIMAL(5, 1),
  at        TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'generator', generator = 'airline.baggage', seed = 7, rate = '500/min',
        start = '2026-03-02 06:00:00', end = '2026-03-02 06:04:00', row_bytes = 100,
        distinct.flight = 125, distinct.area = 4, distinct.status = 4);

CREATE STREAM weather (
  city     STRING,
  forecast STRING,
  celsius  INT,
  at       TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 30 SECONDS
) WITH (connector = 'generator', generator = 'airline.weather', seed = 7, rate = '450/5 min',
        start = '2026-03-02 06:00:00', end = '2026-03-02 06:04:00', row_bytes = 100,
        distinct.city = 450, distinct.forecast = 5);

CREATE STREAM sales (
  dest    STRING,
  channel STRING,
  seats   INT,
  fare    DECIMAL(8, 2),
  at      TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (connector = 'generator', generator = 'airline.sales', seed = 7, rate = '70/min',
        start = '2026-03-02 06:00:00', end = '2026-03-02 06:04:00', row_bytes = 100,
        distinct.dest = 70, distinct.channel = 3);

-- Gate agents.
CREATE CONTINUOUS QUERY gate_12 AS
  SELECT fl.gate, bg.status, ci.status
  FROM flights fl [RANGE 5 MINUTES], baggage bg [RANGE 1 MINUTE], checkins ci [RANGE 1 MINUTE]
  WHERE fl.num = ci.flight AND fl.num = bg.flight AND fl.num = 12;

CREATE CONTINUOUS QUERY gate_17 AS
  SELECT fl.gate, bg.status, ci.status
  FROM flights fl [RANGE 5 MINUTES], baggage bg [RANGE 1 MINUTE], checkins ci [RANGE 1 MINUTE]
  WHERE fl.num = ci.flight AND fl.num = bg.flight AND fl.num = 17;

-- Overhead displays.
CREATE CONTINUOUS QUERY terminal_s AS
  SELECT fl.num, fl.gate, bg.area, ci.status, wr.forecast
  FROM flights fl [RANGE 5 MINUTES], weather wr [RANGE 5 MINUTES],
       checkins ci [RANGE 1 MINUTE], baggage bg [RANGE 1 MINUTE]
  WHERE fl.dest = wr.city AND fl.num = ci.flight AND fl.num = bg.flight
    AND fl.terminal = 'S' AND fl.carrier_code = 'DL';

-- Monitoring.
CREATE CONTINUOUS QUERY bad_weather_ahead AS
  SELECT fl.num, fl.dest, wr.forecast, wr.celsius
  FROM flights fl [RANGE 5 MINUTES], weather wr [RANGE 3 MINUTES]
  WHERE fl.dest = wr.city AND wr.forecast IN ('storm', 'snow');

CREATE CONTINUOUS QUERY sales_by_destination AS
  SELECT window_end, dest, sum(seats) AS seats, sum(seats * fare) AS revenue
  FROM sales [RANGE 3 MINUTES SLIDE 1 MINUTE]
  GROUP BY dest
  HAVING sum(seats) >= 5;

CREATE CONTINUOUS QUERY bags_by_carrier AS
  SELECT window_end, fl.carrier_code, count(*) AS bags, sum(bg.weight_kg) AS weight_kg
  FROM flights fl [RANGE 3 MINUTES SLIDE 1 MINUTE]
  JOIN baggage bg [RANGE 2 MINUTES SLIDE 1 MINUTE] ON fl.num = bg.flight
  GROUP BY fl.carrier_code;

CREATE CONTINUOUS QUERY no_bags_yet AS
  SELECT ci.flight, ci.passenger, ci.at
  FROM checkins ci [RANGE 1 MINUTE]
  LEFT JOIN baggage bg [RANGE 1 MINUTE] ON ci.flight = bg.flight AND bg.status = 'misrouted'
  WHERE bg.flight IS NULL;

CREATE CONTINUOUS QUERY cold_demand AS
  SELECT window_end, s.dest, s.seats, w.coldest
  FROM (SELECT dest, sum(seats) AS seats FROM sales [RANGE 3 MINUTES SLIDE 1 MINUTE] GROUP BY dest) AS s
  JOIN (SELECT city, min(celsius) AS coldest FROM weather [RANGE 3 MINUTES SLIDE 1 MINUTE] GROUP BY city) AS w
    ON s.dest = w.city
  WHERE w.coldest < 0;

CREATE CONTINUOUS QUERY busiest_belts AS
  SELECT window_end, flight, count(*) AS bags
  FROM baggage [RANGE 2 MINUTES SLIDE 1 MINUTE]
  GROUP BY flight
  ORDER BY bags DESC, flight
  LIMIT 3;
