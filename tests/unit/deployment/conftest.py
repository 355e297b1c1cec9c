from __future__ import annotations

import pytest

from plait import language
from plait.planners import driver
from plait.planners.driver import PlanReport
from plait.workload import Workload

TWO_SITES = """
CREATE SITE here  WITH (cores = 4, bandwidth = '1 Mbps');
CREATE SITE there WITH (cores = 4, bandwidth = '1 Mbps');
CREATE LINK here TO there WITH (bandwidth = '100 kbps', latency = '20 ms');
CREATE LINK there TO here WITH (bandwidth = '100 kbps', latency = '20 ms');
CREATE STREAM a (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)
  WITH (connector = 'files', path = '${DATA}/a', format = 'csv',
        rate = 10, row_bytes = 100, distinct.k = 50, distinct.v = 10, site = 'here');
CREATE STREAM b (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)
  WITH (rate = 20, row_bytes = 100, distinct.k = 50, distinct.v = 10, site = 'there');
CREATE STREAM huge (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)
  WITH (rate = 10000, row_bytes = 100, site = 'here');
CREATE CONTINUOUS QUERY pair AT here AS
  SELECT a.v, b.v AS w FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.k = b.k;
CREATE CONTINUOUS QUERY pair_again AT here INTO 'results' AS
  SELECT a.v, b.v AS w FROM b [RANGE 1 MINUTE], a [RANGE 1 MINUTE] WHERE b.k = a.k;
CREATE CONTINUOUS QUERY totals AT there AS
  SELECT k, sum(v) AS total FROM a [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k;
CREATE CONTINUOUS QUERY too_much AT there AS SELECT * FROM huge;
"""


@pytest.fixture
def secret() -> str:
    return "/a/very/private/folder"


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch, secret: str) -> Workload:
    monkeypatch.setenv("DATA", secret)
    return language.load_text(TWO_SITES)


@pytest.fixture
def report(workload: Workload) -> PlanReport:
    return driver.plan(workload)
