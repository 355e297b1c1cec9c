-- Energy consumption of smart plugs: CQ1 to CQ6 of the federation paper (Ji et al., §8.1), on the stream of the
-- DEBS 2014 Grand Challenge.
--
--   plait check    examples/smart_plugs.sql
--   plait plan     examples/smart_plugs.sql --compare     # the six queries share scans, filters and window aggregates
--   plait evaluate examples/smart_plugs.sql cq5 --limit 20
--
-- A plug is known by house, household and plug together. It has two sensors: one measures the load at this moment in
-- watts (property 1), the other the work done so far in kilowatt hours (property 0); all measurements come in
-- one stream. The original has about 2,000 rows a second from 40 houses; the stored data is six plugs in two houses that report
-- every five seconds for six and a half minutes.

CREATE STREAM measurements (
  id           BIGINT,
  ts           TIMESTAMP,
  value        DECIMAL(9, 3),
  property     INT,
  plug_id      INT,
  household_id INT,
  house_id     INT,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (connector = 'files', path = 'data/smart_plugs/measurements', format = 'csv',
        rate = 2000, row_bytes = 64,
        distinct.property = 2, distinct.plug_id = 20, distinct.household_id = 18, distinct.house_id = 40);

-- CQ1: "For each smart plug, count the number of load measurements in the last 5 minutes whose value is higher than
-- 90% of the maximum load in the last 5 minutes." The rows of the window meet the window's own aggregate: a block
-- whose parts all tick every second is evaluated second by second.
CREATE CONTINUOUS QUERY cq1 AS
  SELECT m.house_id, m.household_id, m.plug_id, window_end, count(*) AS high_loads
  FROM measurements m [RANGE 5 MINUTES SLIDE 1 SECOND]
  JOIN (SELECT house_id, household_id, plug_id, max(value) AS max_load
        FROM measurements [RANGE 5 MINUTES SLIDE 1 SECOND]
        WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS top
    ON m.house_id = top.house_id AND m.household_id = top.household_id AND m.plug_id = top.plug_id
  WHERE m.property = 1 AND m.value > 0.9 * top.max_load
  GROUP BY m.house_id, m.household_id, m.plug_id;

-- CQ2: as CQ1, but "higher than the average load in the last 5 minutes".
CREATE CONTINUOUS QUERY cq2 AS
  SELECT m.house_id, m.household_id, m.plug_id, window_end, count(*) AS above_average
  FROM measurements m [RANGE 5 MINUTES SLIDE 1 SECOND]
  JOIN (SELECT house_id, household_id, plug_id, avg(value) AS average_load
        FROM measurements [RANGE 5 MINUTES SLIDE 1 SECOND]
        WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS usual
    ON m.house_id = usual.house_id AND m.household_id = usual.household_id AND m.plug_id = usual.plug_id
  WHERE m.property = 1 AND m.value > usual.average_load
  GROUP BY m.house_id, m.household_id, m.plug_id;

-- CQ3: "For each smart plug, compare the maximum and average load within the last 5 minutes with the maximum and
-- average load within the last 1 minute." Two aggregates of the same second, joined.
CREATE CONTINUOUS QUERY cq3 AS
  WITH long_run AS (
    SELECT house_id, household_id, plug_id, max(value) AS max_load, avg(value) AS average_load
    FROM measurements [RANGE 5 MINUTES SLIDE 1 SECOND]
    WHERE property = 1
    GROUP BY house_id, household_id, plug_id
  ), short_run AS (
    SELECT house_id, household_id, plug_id, max(value) AS max_load, avg(value) AS average_load
    FROM measurements [RANGE 1 MINUTE SLIDE 1 SECOND]
    WHERE property = 1
    GROUP BY house_id, household_id, plug_id
  )
  SELECT l.house_id, l.household_id, l.plug_id, window_end,
         l.max_load AS max_5_minutes, s.max_load AS max_1_minute, s.max_load / l.max_load AS max_ratio,
         l.average_load AS average_5_minutes, s.average_load AS average_1_minute
  FROM long_run l
  JOIN short_run s ON l.house_id = s.house_id AND l.household_id = s.household_id AND l.plug_id = s.plug_id;

-- CQ4: as CQ3, "but only compares the average load within the two different time windows".
CREATE CONTINUOUS QUERY cq4 AS
  SELECT l.house_id, l.household_id, l.plug_id, window_end,
         l.average_load AS average_5_minutes, s.average_load AS average_1_minute,
         s.average_load > l.average_load AS rising
  FROM (SELECT house_id, household_id, plug_id, avg(value) AS average_load
        FROM measurements [RANGE 5 MINUTES SLIDE 1 SECOND]
        WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS l
  JOIN (SELECT house_id, household_id, plug_id, avg(value) AS average_load
        FROM measurements [RANGE 1 MINUTE SLIDE 1 SECOND]
        WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS s
    ON l.house_id = s.house_id AND l.household_id = s.household_id AND l.plug_id = s.plug_id;

-- CQ5: "For each household, find the maximum total load reported by a single smart plug within the last 5 minutes."
-- An aggregate of an aggregate, at the same tick: the outer block has no window and uses the inner one's.
CREATE CONTINUOUS QUERY cq5 AS
  SELECT house_id, household_id, window_end, max(total_load) AS max_total_load
  FROM (SELECT house_id, household_id, plug_id, sum(value) AS total_load
        FROM measurements [RANGE 5 MINUTES SLIDE 1 SECOND]
        WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS plugs
  GROUP BY house_id, household_id;

-- CQ6: "For each smart plug, compare the average loads within the last 1, 3, and 5 minutes."
CREATE CONTINUOUS QUERY cq6 AS
  SELECT a.house_id, a.household_id, a.plug_id, window_end,
         a.average_load AS average_1_minute, b.average_load AS average_3_minutes, c.average_load AS average_5_minutes
  FROM (SELECT house_id, household_id, plug_id, avg(value) AS average_load
        FROM measurements [RANGE 1 MINUTE SLIDE 1 SECOND]
        WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS a
  JOIN (SELECT house_id, household_id, plug_id, avg(value) AS average_load
        FROM measurements [RANGE 3 MINUTES SLIDE 1 SECOND]
        WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS b
    ON a.house_id = b.house_id AND a.household_id = b.household_id AND a.plug_id = b.plug_id
  JOIN (SELECT house_id, household_id, plug_id, avg(value) AS average_load
        FROM measurements [RANGE 5 MINUTES SLIDE 1 SECOND]
        WHERE property = 1
        GROUP BY house_id, household_id, plug_id) AS c
    ON a.house_id = c.house_id AND a.household_id = c.household_id AND a.plug_id = c.plug_id;
