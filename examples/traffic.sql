-- Cars on two roads: the example of D-CAPE (Sutherland, Rundensteiner, §3.1), with its data.
--
--   plait check    examples/traffic.sql
--   plait plan     examples/traffic.sql --compare
--   plait evaluate examples/traffic.sql left_turns
--
-- Two sensors report every car that passes. The paper's table gives times in minutes; minute 0 is 06:00 here.
--
--   Sensor 1                              Sensor 2
--   0  9034 TR   Car    55                0  1345 FD  Car    34
--   0  FED 1     Truck  42                1  MV 1223  Truck  53
--   1  SOXFAN4   Car    50                2  SOXFAN4  Car    65
--   1  8325 DL   Car    35                2  1492 CC  Car    32
--   1  1345 DGE  Car    65                3  UMASS1   SUV    23
--   1  UMASS1    SUV    45                4  1353 DW  SUV    56

CREATE STREAM sensor1 (
  t      TIMESTAMP,
  car_id STRING,
  type   STRING,
  mph    INT,
  WATERMARK FOR t AS t - INTERVAL 1 MINUTE
) WITH (connector = 'files', path = 'data/traffic/sensor1', format = 'csv',
        rate = '6/min', distinct.car_id = 1000, distinct.type = 3);

CREATE STREAM sensor2 (
  t      TIMESTAMP,
  car_id STRING,
  type   STRING,
  mph    INT,
  WATERMARK FOR t AS t - INTERVAL 1 MINUTE
) WITH (connector = 'files', path = 'data/traffic/sensor2', format = 'csv',
        rate = '6/min', distinct.car_id = 1000, distinct.type = 3);

-- The paper's query: "Return all cars and their current MPH that have travelled down Road 2 and taken a LEFT turn
-- onto Road 1 within a 2 minute time period." Two cars were seen by both sensors. SOXFAN4 at minutes 1 and
-- 2, so its rows are in both windows together. UMASS1 at minutes 1 and 3: two minutes apart is just too long, for
-- a window of 2 minutes holds a row until, and not at, the moment it is 2 minutes old.
--
--   car_id   mph
--   SOXFAN4  50
CREATE CONTINUOUS QUERY left_turns AS
  SELECT r1.car_id, r1.mph
  FROM sensor2 AS r2 [RANGE 2 MINUTES], sensor1 AS r1 [RANGE 2 MINUTES]
  WHERE r1.car_id = r2.car_id AND r1.type = 'Car';

-- The same within 3 minutes and for whatever is no truck finds both:
--
--   car_id   mph  minutes_apart
--   SOXFAN4  50   1
--   UMASS1   45   2
CREATE CONTINUOUS QUERY slower_turns AS
  SELECT r1.car_id, r1.mph, CAST((unix_micros(r2.t) - unix_micros(r1.t)) / 60000000 AS INT) AS minutes_apart
  FROM sensor1 r1 [RANGE 3 MINUTES]
  JOIN sensor2 r2 [RANGE 3 MINUTES] ON r1.car_id = r2.car_id
  WHERE r1.type <> 'Truck';

-- How fast each kind of vehicle drives on Road 1, every two minutes. The window that ends at minute 2 holds all
-- six rows: four cars (55, 50, 35, 65), a truck and an SUV.
--
--   window_end  type   vehicles  mean_mph
--   06:02       Car    4         51.25
--   06:02       SUV    1         45.0
--   06:02       Truck  1         42.0
CREATE CONTINUOUS QUERY speed_by_type AS
  SELECT window_end, type, count(*) AS vehicles, avg(mph) AS mean_mph
  FROM sensor1 [RANGE 2 MINUTES]
  GROUP BY type;

-- Vehicles that sensor 1 saw and sensor 2 did not see within 3 minutes. An outer join answers once the window is
-- closed: before, a match could still come.
--
--   car_id    mph
--   1345 DGE  65
--   8325 DL   35
--   9034 TR   55
--   FED 1     42
CREATE CONTINUOUS QUERY gone_straight AS
  SELECT r1.car_id, r1.mph
  FROM sensor1 r1 [RANGE 3 MINUTES]
  LEFT JOIN sensor2 r2 [RANGE 3 MINUTES] ON r1.car_id = r2.car_id
  WHERE r2.car_id IS NULL;
