"""The examples run as they are, and their rows are the definition's. (The airline's run is `plait demo`.)"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import plait
from plait.evaluator import difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[2] / "examples"


NAMES = sorted(file.stem for file in EXAMPLES.glob("*.sql") if file.stem != "airline")


@pytest.mark.parametrize(
    ("name", "planner"),
    [
        *((name, "plait") for name in NAMES),
        pytest.param("smart_plugs", "independent", marks=pytest.mark.slow),
    ],
)
def test_example(name: str, planner: str, spark: SparkSession, tmp_path: Path) -> None:
    with plait.open(EXAMPLES / f"{name}.sql", spark=spark) as session:
        running = session.run(
            planner, state=tmp_path / "state", results=tmp_path / "results", available_now=True, drain=True
        )
        running.wait()
        for query in session.queries:
            assert not difference(running.results(query).rows, session.evaluate(query).rows), query
            assert len(running.results(query)) > 0, query
