-- Queries of every class that runs on Spark's own operators. Each is compared with its definition.

CREATE STREAM readings (plug INT, load INT, price DECIMAL(8,2), level DOUBLE, at TIMESTAMP,
                        WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM alarms (plug INT, code STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 20 SECONDS);
CREATE STREAM visits (plug INT, worker STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE TABLE rooms (plug INT, room STRING);

-- Row by row, and unions

CREATE CONTINUOUS QUERY filtered AS
  SELECT plug, load * 2 AS twice, 100 / load AS share FROM readings WHERE load > 5;

CREATE CONTINUOUS QUERY united AS
  SELECT plug, code AS what FROM alarms WHERE plug > 1 UNION ALL SELECT plug, worker FROM visits;

CREATE CONTINUOUS QUERY united_then_counted AS
  SELECT plug, count(*) AS n, window_end
  FROM (SELECT plug, code AS what FROM alarms UNION ALL SELECT plug, worker FROM visits) e [RANGE 10 SECONDS]
  GROUP BY plug;

-- Aggregates

CREATE CONTINUOUS QUERY tumbling AS
  SELECT plug, count(*) AS n, count(load) AS loads, sum(load) AS total, avg(load) AS mean, min(price) AS low,
         max(price) AS high, sum(price) AS paid, stddev(level) AS spread, max(level) AS top,
         window_start, window_end
  FROM readings [RANGE 10 SECONDS] GROUP BY plug;

CREATE CONTINUOUS QUERY sliding AS
  SELECT plug, sum(load) AS total, window_end FROM readings [RANGE 20 SECONDS SLIDE 5 SECONDS] GROUP BY plug;

CREATE CONTINUOUS QUERY no_multiple_of_the_slide AS
  SELECT count(*) AS n, window_start, window_end FROM readings [RANGE 7 SECONDS SLIDE 3 SECONDS];

CREATE CONTINUOUS QUERY range_below_the_slide AS
  SELECT count(*) AS n, window_start, window_end FROM readings [RANGE 3 SECONDS SLIDE 10 SECONDS];

CREATE CONTINUOUS QUERY with_an_offset AS
  SELECT count(*) AS n, window_end FROM readings
  GROUP BY window(at, '15 seconds', '10 seconds', '3 seconds');

CREATE CONTINUOUS QUERY of_some_groups AS
  SELECT plug, sum(load) FILTER (WHERE load > 10) AS high FROM readings [RANGE 10 SECONDS]
  GROUP BY plug HAVING count(*) > 1 AND plug > 1;

CREATE CONTINUOUS QUERY of_some_ticks AS
  SELECT plug, count(*) AS n, window_end FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS]
  WHERE window_end > TIMESTAMP '2026-01-01 12:00:20' GROUP BY plug;

CREATE CONTINUOUS QUERY groups_only AS
  SELECT plug FROM readings [RANGE 10 SECONDS] GROUP BY plug;

CREATE CONTINUOUS QUERY different_pairs AS
  SELECT plug, count(DISTINCT load, level) AS n, window_end FROM readings [RANGE 10 SECONDS] GROUP BY plug;

CREATE CONTINUOUS QUERY different_and_others AS
  SELECT plug, count(DISTINCT load) AS loads, count(DISTINCT level, load) AS pairs, sum(load) AS total,
         count(DISTINCT level) AS levels, count(DISTINCT load) FILTER (WHERE load > 20) AS high
  FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY plug;

CREATE CONTINUOUS QUERY sums_of_sums AS
  SELECT plug, sum(total) AS total, count(*) AS n, window_end
  FROM (SELECT plug, sum(load) AS total FROM readings [RANGE 5 SECONDS] GROUP BY plug) m [RANGE 20 SECONDS]
  GROUP BY plug;

CREATE CONTINUOUS QUERY highest_total AS
  WITH totals AS (SELECT plug, sum(load) AS total FROM readings [RANGE 10 SECONDS] GROUP BY plug)
  SELECT max(total) AS highest, count(*) AS n FROM totals;

-- Joins of rows

CREATE CONTINUOUS QUERY two_streams AS
  SELECT a.code, r.load FROM alarms a [RANGE 20 SECONDS], readings r [RANGE 5 SECONDS] WHERE a.plug = r.plug;

CREATE CONTINUOUS QUERY of_one_plug AS
  SELECT a.code, r.load FROM alarms a [RANGE 20 SECONDS], readings r [RANGE 20 SECONDS]
  WHERE a.plug = r.plug AND a.plug = 1;

CREATE CONTINUOUS QUERY three_streams AS
  SELECT a.code, r.load, v.worker
  FROM alarms a [RANGE 20 SECONDS], readings r [RANGE 5 SECONDS], visits v [RANGE 9 SECONDS]
  WHERE a.plug = r.plug AND r.plug = v.plug;

CREATE CONTINUOUS QUERY with_itself AS
  SELECT l.load AS less, m.load AS more FROM readings l [RANGE 5 SECONDS], readings m [RANGE 8 SECONDS]
  WHERE l.plug = m.plug AND l.load < m.load AND l.load > 20;

CREATE CONTINUOUS QUERY pairs_of_readings AS
  SELECT l.load AS less, m.load AS more FROM readings l [RANGE 5 SECONDS], readings m [RANGE 5 SECONDS]
  WHERE l.plug = m.plug AND l.load < m.load;

CREATE CONTINUOUS QUERY left_join AS
  SELECT a.plug, a.code, v.worker
  FROM alarms a [RANGE 20 SECONDS] LEFT JOIN visits v [RANGE 3 SECONDS] ON a.plug = v.plug AND a.code <> v.worker;

CREATE CONTINUOUS QUERY full_join_of_high AS
  SELECT r.plug, r.load, v.worker FROM readings r [RANGE 10 SECONDS]
  FULL JOIN visits v [RANGE 5 SECONDS] ON r.plug = v.plug AND r.load > 20 AND v.plug > 1;

CREATE CONTINUOUS QUERY left_join_of_some AS
  SELECT a.plug, a.code, v.worker
  FROM alarms a [RANGE 20 SECONDS] LEFT JOIN visits v [RANGE 3 SECONDS]
    ON a.plug = v.plug AND a.code = 'hot' AND v.worker = 'ann';

CREATE CONTINUOUS QUERY right_join AS
  SELECT a.plug, a.code, v.worker
  FROM alarms a [RANGE 5 SECONDS] RIGHT JOIN visits v [RANGE 3 SECONDS] ON a.plug = v.plug;

CREATE CONTINUOUS QUERY full_join AS
  SELECT a.plug, a.code, v.plug AS other, v.worker
  FROM alarms a [RANGE 5 SECONDS] FULL JOIN visits v [RANGE 3 SECONDS] ON a.plug = v.plug;

CREATE CONTINUOUS QUERY chain_of_left_joins AS
  SELECT a.plug, r.load, v.worker
  FROM alarms a [RANGE 10 SECONDS] LEFT JOIN readings r [RANGE 5 SECONDS] ON a.plug = r.plug
    LEFT JOIN visits v [RANGE 7 SECONDS] ON a.plug = v.plug;

CREATE CONTINUOUS QUERY rows_with_sums AS
  SELECT s.total, r.load
  FROM (SELECT plug, sum(load) AS total FROM readings [RANGE 10 SECONDS] GROUP BY plug) s [RANGE 15 SECONDS],
       readings r [RANGE 3 SECONDS]
  WHERE s.plug = r.plug;

-- Aggregates of joins of rows

CREATE CONTINUOUS QUERY of_a_join AS
  SELECT sum(load) AS total, count(*) AS n, window_end
  FROM (SELECT r.load FROM alarms a [RANGE 20 SECONDS], readings r [RANGE 5 SECONDS]
        WHERE a.plug = r.plug) m [RANGE 10 SECONDS];

CREATE CONTINUOUS QUERY of_a_left_join AS
  SELECT count(*) AS n, count(worker) AS met, window_end
  FROM (SELECT v.worker FROM alarms a [RANGE 20 SECONDS] LEFT JOIN visits v [RANGE 5 SECONDS]
        ON a.plug = v.plug) m [RANGE 10 SECONDS];

CREATE CONTINUOUS QUERY of_a_full_join AS
  SELECT count(*) AS n, count(worker) AS met, window_end
  FROM (SELECT v.worker FROM alarms a [RANGE 20 SECONDS] FULL JOIN visits v [RANGE 5 SECONDS]
        ON a.plug = v.plug) m [RANGE 10 SECONDS];

-- Joins at ticks

CREATE CONTINUOUS QUERY near_the_top AS
  SELECT r.plug, count(*) AS n, window_end
  FROM readings r [RANGE 20 SECONDS SLIDE 10 SECONDS],
       (SELECT plug, max(load) AS top FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY plug) m
  WHERE r.plug = m.plug AND r.load > 0.5 * m.top GROUP BY r.plug;

CREATE CONTINUOUS QUERY long_and_short AS
  SELECT l.plug, l.top AS long_top, s.top AS short_top
  FROM (SELECT plug, max(load) AS top FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY plug) l
  JOIN (SELECT plug, max(load) AS top FROM readings [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY plug) s
    ON l.plug = s.plug;

CREATE CONTINUOUS QUERY above_the_mean AS
  SELECT r.plug, r.load, m.mean
  FROM readings r [RANGE 20 SECONDS SLIDE 10 SECONDS],
       (SELECT avg(load) AS mean FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS]) m
  WHERE r.load > m.mean;

CREATE CONTINUOUS QUERY of_joined_windows AS
  SELECT a.code, count(*) AS n, sum(r.load) AS total, window_end
  FROM alarms a [RANGE 10 SECONDS], readings r [RANGE 10 SECONDS] WHERE a.plug = r.plug GROUP BY a.code;

CREATE CONTINUOUS QUERY three_at_ticks AS
  SELECT r.plug, r.n AS readings, a.n AS alarms, v.worker
  FROM (SELECT plug, count(*) AS n FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY plug) r,
       (SELECT plug, count(*) AS n FROM alarms [RANGE 10 SECONDS] GROUP BY plug) a,
       visits v [RANGE 10 SECONDS]
  WHERE r.plug = a.plug AND v.plug = r.plug;

CREATE CONTINUOUS QUERY left_join_at_ticks AS
  SELECT r.plug, r.load, a.n
  FROM readings r [RANGE 10 SECONDS]
  LEFT JOIN (SELECT plug, count(*) AS n FROM alarms [RANGE 10 SECONDS] GROUP BY plug) a ON r.plug = a.plug;

CREATE CONTINUOUS QUERY full_join_at_ticks AS
  SELECT r.plug, r.n, a.plug AS other, a.n AS alarms, window_end
  FROM (SELECT plug, count(*) AS n FROM readings [RANGE 10 SECONDS] GROUP BY plug) r
  FULL JOIN (SELECT plug, count(*) AS n FROM alarms [RANGE 10 SECONDS] GROUP BY plug) a ON r.plug = a.plug;

CREATE CONTINUOUS QUERY united_at_ticks AS
  SELECT plug, count(*) AS n FROM readings [RANGE 10 SECONDS] GROUP BY plug
  UNION ALL SELECT plug, count(*) AS n FROM alarms [RANGE 10 SECONDS] GROUP BY plug;

-- What is done on each micro-batch

CREATE CONTINUOUS QUERY first_two AS
  SELECT plug, sum(load) AS total, window_end FROM readings [RANGE 10 SECONDS]
  GROUP BY plug ORDER BY total DESC LIMIT 2;

CREATE CONTINUOUS QUERY rooms_of_readings AS
  SELECT m.room, r.load FROM readings r LEFT JOIN rooms m ON r.plug = m.plug;

CREATE CONTINUOUS QUERY rooms_of_a_join AS
  SELECT a.code, r.load, m.room
  FROM alarms a [RANGE 20 SECONDS], readings r [RANGE 5 SECONDS], rooms m
  WHERE a.plug = r.plug AND m.plug = a.plug AND m.room <> a.code;

CREATE CONTINUOUS QUERY first_room AS
  SELECT t.plug, m.room, t.total, window_end
  FROM (SELECT plug, sum(load) AS total FROM readings [RANGE 10 SECONDS] GROUP BY plug) t
  JOIN rooms m ON t.plug = m.plug
  ORDER BY t.total, m.room LIMIT 1;
