"""What is asked of the rows of a query that was dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from plait import language
from plait.api.live import LiveQueries, LiveQuery
from plait.benchmarks.dropped import Standing, standings, wrong_until_dropped
from plait.evaluator import Result, StoredData, evaluate
from plait.runtime.load import Load, QueryLoad

NOON = datetime(2026, 1, 1, 12)
NOON_US = 1_767_268_800_000_000
STREAM = (
    "(k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at) "
    "WITH (connector = 'files', path = 'p', format = 'json')"
)
WORKLOAD = language.load_text(f"""
CREATE STREAM a {STREAM};
CREATE STREAM b {STREAM};
CREATE CONTINUOUS QUERY filtered AS SELECT v FROM a WHERE k = 0;
CREATE CONTINUOUS QUERY ticks AS SELECT window_end, count(*) AS n FROM a [RANGE 2 SECONDS];
CREATE CONTINUOUS QUERY joined AS SELECT a.v, b.v AS w FROM a [RANGE 3 SECONDS], b [RANGE 3 SECONDS]
  WHERE a.k = b.k;
CREATE CONTINUOUS QUERY unmatched AS SELECT a.v FROM a [RANGE 3 SECONDS] LEFT JOIN b [RANGE 3 SECONDS]
  ON a.v = b.v AND b.v < 0 WHERE b.v IS NULL;
""")


@pytest.fixture(scope="module")
def expected() -> dict[str, Result]:
    """Of rows a second, for ten seconds."""
    rows = [(n % 2, n, NOON + timedelta(seconds=n)) for n in range(10)]
    with StoredData.from_rows(WORKLOAD.catalog, {"a": rows, "b": rows}) as data:
        return {name: evaluate(query, data) for name, query in WORKLOAD.queries.items()}


def standing(seconds: float, rows: int = 0) -> Standing:
    return Standing(rows, NOON_US + int(seconds * 1e6))


def wrong(query: str, expected: Result, given: Iterable[tuple[Any, ...]], stood: Standing) -> str:
    return wrong_until_dropped(WORKLOAD.query(query), expected, [*given], stood, WORKLOAD.queries.values())


# What was due when the watermark was six seconds after noon, from the rows of the seconds 0 to 5: ticks up to
# the watermark, and of the outer join what can find no partner any more.
DUE: dict[str, list[tuple[Any, ...]]] = {
    "filtered": [(0,), (2,), (4,)],
    "ticks": [(NOON + timedelta(seconds=tick), 2) for tick in (2, 4, 6)],
    "joined": [(v, w) for v in range(6) for w in range(6) if (v - w) in (-2, 0, 2)],
    "unmatched": [(0,), (1,), (2,)],
}


@pytest.mark.parametrize("query", DUE)
def test_each_row_that_was_due_has_to_be_there(query: str, expected: dict[str, Result]) -> None:
    due, stood = DUE[query], standing(6)
    assert expected[query].before(stood.certain_before_us(WORKLOAD.query(query), ())) == sorted(due)
    assert wrong(query, expected[query], due, stood) == ""
    for missing in due:
        given = [row for row in due if row != missing]
        assert "1 rows are missing that were due" in wrong(query, expected[query], given, stood)
    assert "rows are missing" in wrong(query, expected[query], [], stood)


@pytest.mark.parametrize("query", DUE)
def test_more_may_have_come_before_it_was_dropped(query: str, expected: dict[str, Result]) -> None:
    all_rows = [*expected[query].rows]
    assert len(all_rows) > len(DUE[query])
    assert wrong(query, expected[query], all_rows, standing(6)) == ""
    assert "1 rows are not of its definition" in wrong(
        query, expected[query], [*all_rows, all_rows[-1]], standing(6)
    )


def test_what_was_counted_has_to_be_there_whatever_the_watermark(expected: dict[str, Result]) -> None:
    """A filter does not wait for the watermark; and of a query that is handed over it is not known."""
    given = [(0,), (2,)]
    for stood in (standing(0, 3), Standing(3, None)):
        found = wrong("filtered", expected["filtered"], given, stood)
        assert found == "3 rows were counted before it was dropped, and 2 are there"
        assert wrong("filtered", expected["filtered"], [*given, (4,)], stood) == ""


def test_on_spark_a_join_holds_back_all_that_are_computed_with_it(expected: dict[str, Result]) -> None:
    on_spark = replace(standing(6), in_database=False)
    assert "missing" in wrong("filtered", expected["filtered"], [(0,)], standing(6))
    assert wrong("filtered", expected["filtered"], [(0,), (2,)], on_spark) == ""
    assert "missing" in wrong("filtered", expected["filtered"], [(0,)], on_spark)


def test_a_query_that_is_handed_over_has_no_watermark_to_go_by() -> None:
    live = LiveQuery("one", "shared", "shared-0", None, "running", 7, "somewhere")
    left = replace(live, name="two", leaves={"fragment": "shared-1", "until_us": 9})
    loads = [QueryLoad(name, "shared-0", "running", 7, 0.0, 5, None, 0.0) for name in ("one", "two", "new")]
    system = SimpleNamespace(
        queries=lambda: LiveQueries([live, left]),
        statistics=lambda: Load(1.0, None, (), (), tuple(loads)),
    )
    assert standings(system) == {"one": Standing(7, 5), "two": Standing(7, None)}
