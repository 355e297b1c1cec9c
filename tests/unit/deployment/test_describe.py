"""Operators in the reader's words: names back on columns, SQL without casts."""

from __future__ import annotations

import pytest

import plait
from plait.deployment.describe import description, window_text
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    RowWindow,
    TickWindow,
    Top,
    Union,
    walk_plan,
)

CATALOG = """
CREATE STREAM flights (num INT, dest STRING, late BOOLEAN, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE STREAM checkins (flight INT, dest STRING, bags DECIMAL(4, 1), at TIMESTAMP, WATERMARK FOR at AS at);
"""


def described(query: str, kind: type[Node]) -> str:
    """What the node of that kind does, in the query as it is bound."""
    session = plait.open_text(f"{CATALOG} CREATE CONTINUOUS QUERY q AS {query};")
    (node,) = [node for node in walk_plan(session.query("q").plan) if isinstance(node, kind)]
    return description(node)


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        ("num = 17", "num = 17"),
        (
            "num + 1 = 17 OR NOT (num * 2 > 3 AND dest = 'ATL')",
            "num + 1 = 17 OR NOT (num * 2 > 3 AND dest = 'ATL')",
        ),
        ("(num + 1) * 2 < 3", "(num + 1) * 2 < 3"),
        ("num - (1 - num) = 0", "num - (1 - num) = 0"),
        ("dest IS NULL", "dest IS NULL"),
        ("dest IS NOT NULL", "dest IS NOT NULL"),
        ("NOT late", "NOT late"),
        ("dest IN ('ATL', 'it''s')", "dest IN ('ATL', 'it''s')"),
        ("dest LIKE 'A%'", "dest LIKE 'A%'"),
        ("-num < 0", "-num < 0"),
        ("upper(dest) = 'ATL'", "upper(dest) = 'ATL'"),
        ("num > 1.5", "num > 1.5"),
        ("at > TIMESTAMP '2026-01-31 12:00:00'", "at > '2026-01-31 12:00:00'"),
        ("CASE WHEN num = 1 THEN late ELSE FALSE END", "CASE WHEN num = 1 THEN late ELSE FALSE END"),
    ],
)
def test_predicates(predicate: str, text: str) -> None:
    assert described(f"SELECT num FROM flights WHERE {predicate}", Filter) == text


def test_names_are_qualified_where_two_are_alike() -> None:
    condition = "f.num = c.flight AND f.dest = c.dest"
    join = f"FROM flights f [RANGE 5 MINUTES] JOIN checkins c [RANGE 1 MINUTE] ON {condition}"
    assert described(f"SELECT f.num {join}", Join) == "num = flight AND flights.dest = checkins.dest"
    left = join.replace("JOIN", "LEFT JOIN")
    assert described(f"SELECT f.num {left}", OuterJoin).startswith("left outer, num = flight")
    cross = "FROM flights f [RANGE 5 MINUTES], checkins c [RANGE 1 MINUTE]"
    assert described(f"SELECT f.num {cross}", Join) == "all pairs"


def test_aggregates() -> None:
    query = """SELECT dest, count(*) AS n, count(DISTINCT flight) AS d, sum(bags) FILTER (WHERE bags > 1) AS s
               FROM checkins [RANGE 1 HOUR] GROUP BY dest"""
    assert (
        described(query, Aggregate) == "count(*), count(DISTINCT flight), sum(bags) where bags > 1.0 by dest"
    )


def test_results_of_aggregates_keep_their_text() -> None:
    query = "SELECT dest, max(bags) + 1 AS m FROM checkins [RANGE 1 HOUR] GROUP BY dest"
    assert described(query, Project) == "dest, max(bags) + 1"


def test_top_and_union() -> None:
    top = (
        "SELECT dest, count(*) AS n FROM checkins [RANGE 1 HOUR] GROUP BY dest ORDER BY n DESC, dest LIMIT 3"
    )
    assert described(top, Top) == "first 3 by count(*) DESC, dest"
    union = "SELECT num FROM flights UNION ALL SELECT flight FROM checkins"
    assert described(union, Union) == "of 2 streams"


def test_windows() -> None:
    assert window_text(TickWindow(300_000_000, 300_000_000)) == "[5 min tumbling]"
    assert window_text(TickWindow(300_000_000, 60_000_000, 1_000_000)) == "[5 min every 1 min + 1 s]"
    assert window_text(RowWindow(10, 10)) == "[10 rows]"
    assert window_text(RowWindow(10, 5, (1,)), ["num", "dest"]) == "[10 rows every 5 of each dest]"
