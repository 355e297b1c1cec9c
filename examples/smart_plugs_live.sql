-- The smart plugs of smart_plugs.sql as they live: load and work of 1,000 plugs in 40 houses, made up as time goes by.
--
--   plait run      examples/smart_plugs_live.sql --available-now --drain
--   plait evaluate examples/smart_plugs_live.sql cq5 --limit 20      # the same rows, from the definition
--
-- The paper's plugs report every second, 2,000 rows a second in all; its rate factor makes them report more often. At the
-- rate of 100 here, each sensor reports every 20 seconds, and a minute and a half is enough to look at. Leave out `start`
-- and `end` and the stream begins when it is first run and goes on with the clock; `rate = 2000` is the paper's.
--
-- CQ1 to CQ6 slide every second; here they slide every 10, over a minute and half a minute for five and one.

CREATE STREAM measurements (
  id           BIGINT,
  ts           TIMESTAMP,
  value        DECIMAL(9, 3),
  property     INT,
  plug_id      INT,
  household_id INT,
  house_id     INT,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (connector = 'generator', generator = 'smart_plugs.measurements', seed = 7, rate = 100,
        start = '2026-03-02 06:00:00', end = '2026-03-02 06:01:30', row_bytes = 64,
        distinct.property = 2, distinct.plug_id = 13, distinct.household_id = 18, distinct.house_id = 40);

CREATE CONTINUOUS QUERY cq1 AS
  SELECT m.house_id, m.household_id, m.plug_id, window_end, count(*) AS high_loads
  FROM measurements m [RANGE 1 MINUTE SLIDE 10 SECONDS]
  JOIN (SELECT house_id, household_id, plug_id, max(value) AS max_load
        FROM measurements [RANGE 1 MINUTE SLIDE 10 SECONDS]
        WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS top
    ON m.house_id = top.house_id AND m.household_id = top.household_id AND m.plug_id = top.plug_id
  WHERE m.property = 1 AND m.value > 0.9 * top.max_load
  GROUP BY m.house_id, m.household_id, m.plug_id;

CREATE CONTINUOUS QUERY cq2 AS
  SELECT m.house_id, m.household_id, m.plug_id, window_end, count(*) AS above_average
  FROM measurements m [RANGE 1 MINUTE SLIDE 10 SECONDS]
  JOIN (SELECT house_id, household_id, plug_id, avg(value) AS average_load
        FROM measurements [RANGE 1 MINUTE SLIDE 10 SECONDS]
        WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS usual
    ON m.house_id = usual.house_id AND m.household_id = usual.household_id AND m.plug_id = usual.plug_id
  WHERE m.property = 1 AND m.value > usual.average_load
  GROUP BY m.house_id, m.household_id, m.plug_id;

CREATE CONTINUOUS QUERY cq3 AS
  WITH long_run AS (
    SELECT house_id, household_id, plug_id, max(value) AS max_load, avg(value) AS average_load
    FROM measurements [RANGE 1 MINUTE SLIDE 10 SECONDS]
    WHERE property = 1
    GROUP BY house_id, household_id, plug_id
  ), short_run AS (
    SELECT house_id, household_id, plug_id, max(value) AS max_load, avg(value) AS average_load
    FROM measurements [RANGE 30 SECONDS SLIDE 10 SECONDS]
    WHERE property = 1
    GROUP BY house_id, household_id, plug_id
  )
  SELECT l.house_id, l.household_id, l.plug_id, window_end,
         l.max_load AS max_long, s.max_load AS max_short, s.max_load / l.max_load AS max_ratio,
         l.average_load AS average_long, s.average_load AS average_short
  FROM long_run l
  JOIN short_run s ON l.house_id = s.house_id AND l.household_id = s.household_id AND l.plug_id = s.plug_id;

CREATE CONTINUOUS QUERY cq5 AS
  SELECT house_id, household_id, window_end, max(total_load) AS max_total_load
  FROM (SELECT house_id, household_id, plug_id, sum(value) AS total_load
        FROM measurements [RANGE 1 MINUTE SLIDE 10 SECONDS]
        WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS plugs
  GROUP BY house_id, household_id;

-- Not of the paper: measurements that came without a value, by house.
CREATE CONTINUOUS QUERY silent_sensors AS
  SELECT window_end, house_id, count(*) - count(value) AS without_value
  FROM measurements [RANGE 1 MINUTE]
  GROUP BY house_id
  HAVING count(*) > count(value);
