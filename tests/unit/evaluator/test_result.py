from __future__ import annotations

import math
from decimal import Decimal

from plait.evaluator import difference, same_rows


def test_order_does_not_matter_and_duplicates_do() -> None:
    assert same_rows([(1, "a"), (2, None)], [(2, None), (1, "a")])
    assert not same_rows([(1,), (1,)], [(1,)])
    assert same_rows([], [])


def test_doubles_compare_relatively() -> None:
    assert same_rows([(1e9 + 0.1,), (2.0,)], [(2.0 * (1 + 1e-10),), (1e9,)])
    assert not same_rows([(1.0,)], [(1.0 + 1e-8,)])
    assert not same_rows([(1.0,)], [(None,)])


def test_special_doubles() -> None:
    assert same_rows([(math.nan,), (-0.0,), (math.inf,)], [(0.0,), (math.inf,), (float("nan"),)])
    assert not same_rows([(math.nan,)], [(0.0,)])
    assert not same_rows([(math.inf,)], [(-math.inf,)])


def test_close_doubles_are_paired_whatever_their_neighbours() -> None:
    left = [(1, 0.3, 5.0), (1, 0.1 + 0.2, 4.0)]
    right = [(1, 0.3, 4.0), (1, 0.30000000000000004, 5.0)]
    assert same_rows(left, right)


def test_everything_else_compares_exactly() -> None:
    assert not same_rows([(1,)], [(1.0,)])
    assert not same_rows([(1,)], [(True,)])
    assert not same_rows([(10**18,)], [(10**18 + 1,)])
    assert same_rows([(Decimal("1.50"),)], [(Decimal("1.5"),)])


def test_the_difference_shows_the_rows_and_stays_short() -> None:
    text = difference([(k,) for k in range(50)], [(3,), (99,)])
    assert text.splitlines()[0].startswith("only left (49): (0,), (1,)")
    assert text.splitlines()[0].endswith("…")
    assert text.splitlines()[1] == "only right (1): (99,)"
