"""A stream joined with itself: the written order of its occurrences never shows in the plan."""

from __future__ import annotations

from itertools import permutations

import pytest

from plait.language import load_text
from plait.plan.signature import signature
from plait.rewrite import canonicalise

CATALOG = """
CREATE STREAM s (x INT, y INT, w INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND);
CREATE STREAM u (x INT, z INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND);
"""


def signatures(selected: str, inputs: list[str], conditions: list[str]) -> set[str]:
    """Of the query with its inputs in every order, under each of several ways to write its condition."""
    texts = [
        f"SELECT {selected} FROM {', '.join(f'{name[0]} [RANGE 1 MINUTE] AS {name[2:]}' for name in order)} "
        f"WHERE {condition}"
        for order in permutations(inputs)
        for condition in conditions
    ]
    statements = [f"CREATE CONTINUOUS QUERY q{number} AS {text};" for number, text in enumerate(texts)]
    queries = load_text("\n".join([CATALOG, *statements])).queries.values()
    return {signature(canonicalise(query.plan)) for query in queries}


@pytest.mark.parametrize("selected", ["a.y, b.y AS other", "a.y, c.z"])
@pytest.mark.parametrize(
    "conditions",
    [
        ["a.x = b.x AND a.x + c.z > 5", "a.x = b.x AND 5 < b.x + c.z"],
        ["a.x = b.x AND a.x + c.z > a.w", "b.x = a.x AND a.w < b.x + c.z"],
        ["a.x = b.x AND a.x < c.z AND b.w = c.x", "c.x = b.w AND a.x = b.x AND c.z > b.x"],
        ["a.x = b.y AND b.x = a.y AND a.w < c.x", "c.x > a.w AND a.y = b.x AND b.y = a.x"],
    ],
)
def test_twice_beside_another_stream(selected: str, conditions: list[str]) -> None:
    assert len(signatures(selected, ["s a", "s b", "u c"], conditions)) == 1


@pytest.mark.parametrize(
    ("selected", "condition"),
    [
        ("a.y", "a.x < b.x AND b.x < c.x AND c.x < a.x"),
        ("a.y, b.y AS p, c.y AS r", "a.x = b.x AND b.x = c.x"),
        ("a.y + b.y AS p, c.y AS r", "a.x = b.x AND b.x = c.x"),
        ("a.y, c.y AS p", "a.x = b.x AND b.y = c.y"),
    ],
)
def test_three_times(selected: str, condition: str) -> None:
    assert len(signatures(selected, ["s a", "s b", "s c"], [condition])) == 1


def test_occurrences_that_differ_stay_apart() -> None:
    condition = "a.x = b.x AND a.w < b.w"
    assert (
        len(signatures("a.y", ["s a", "s b"], [condition]) | signatures("b.y", ["s a", "s b"], [condition]))
        == 2
    )
