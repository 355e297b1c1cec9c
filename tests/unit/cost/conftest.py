from __future__ import annotations

import pytest

from plait import language
from plait.catalog import Catalog
from plait.cost.model import CostModel

# Rates and distinct values of the hierarchical paper's Fig. 5, rounded.
AIRLINE = """
CREATE STREAM flights (num INT, dest STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (rate = 5, row_bytes = 100, distinct.num = 1500, distinct.dest = 450);
CREATE STREAM checkins (flight INT, status STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (rate = 4, row_bytes = 100, distinct.flight = 120, distinct.status = 3);
CREATE STREAM baggage (flight INT, status STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (rate = 8, row_bytes = 100, distinct.flight = 125, distinct.status = 4);
CREATE STREAM anything (x INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE TABLE planes (num INT, seats INT) WITH (rows = 300, distinct.num = 300);
"""


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return language.load_text(AIRLINE).catalog


@pytest.fixture(scope="session")
def cost(catalog: Catalog) -> CostModel:
    return CostModel(catalog)
