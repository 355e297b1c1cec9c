"""Which queries share a join: those for which one costs less than several."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.sharing.joining import joining

from plait.cost.model import CostModel
from plait.cost.units import DUCKDB, SPARK
from plait.sharing import parts
from plait.sharing.demands import demands, work_of
from plait.sharing.joins import WovenJoin
from plait.sharing.parts import busy_s, parted

PAIRS = [f"a.v = {n} AND b.w = {n + 50}" for n in range(30)]


def found(*filters: str, engine: str = DUCKDB, **how: Any) -> list[list[str]]:
    """The queries of each part."""
    members, cost = joining(*filters, **how)
    return [[member.query for member in part] for part in parted(members, cost, engine).values()]


def price(members: list[WovenJoin], cost: CostModel) -> float:
    wanted = demands(members, cost)
    return busy_s(wanted[0].streams, work_of(wanted), DUCKDB, cost.unit_costs)


def test_few_rows_are_one_join_whatever_meets() -> None:
    assert len(found(*PAIRS, rate=10)) == 1


def test_many_rows_are_parted_where_most_combinations_would_be_unwanted() -> None:
    """At a middle rate some are together: as many as cost least."""
    sizes = {rate: sorted(map(len, found(*PAIRS, rate=rate))) for rate in (3_000, 30_000, 1_000_000)}
    assert sizes[1_000_000] == [1] * 30
    assert 2 <= max(sizes[30_000]) <= 10
    assert max(sizes[30_000]) - min(sizes[30_000]) <= max(sizes[30_000])
    assert sizes[3_000] == [30]


def test_queries_are_with_those_that_want_the_same_rows() -> None:
    some = [f"a.v = {n} AND b.w = {n % 6 + 50}" for n in range(30)]
    assert sorted(map(len, found(*some, rate=300_000))) == [5] * 6
    grid = [f"a.v = {n % 5} AND b.w = {n // 5 + 50}" for n in range(30)]
    assert len(found(*grid, rate=300_000)) == 1  # all combinations are wanted


def test_equal_columns_are_one_choice() -> None:
    for rate in (1_000, 1_000_000):
        assert len(found(*(f"a.k = {n}" for n in range(30)), rate=rate)) == 1
        assert len(found(*(f"a.k = {n} AND b.w > {n}" for n in range(30)), rate=rate)) == 1


def test_one_stream_that_is_filtered_is_no_waste() -> None:
    assert len(found(*(f"a.v = {n}" for n in range(30)), rate=1_000_000)) == 1
    assert len(found(*(f"a.v > {n}" for n in range(30)), rate=1_000_000)) == 1


def test_rows_are_not_kept_for_a_day_for_queries_of_a_minute() -> None:
    """Unless these are few, or the same."""
    each_its_own = [f"a.v = {n}" for n in range(20)]
    ranges_s = [60] * 19 + [86_400]
    assert found(*each_its_own, ranges_s=ranges_s, rate=1_000) == [[f"q{n}" for n in range(19)], ["q19"]]
    assert len(found(*each_its_own, ranges_s=ranges_s, rate=10)) == 1
    assert len(found(*["a.v = 1"] * 20, ranges_s=ranges_s, rate=1_000)) == 1


def test_on_spark_a_join_is_a_streaming_query() -> None:
    assert len(found(*PAIRS[:2], rate=100_000)) == 2
    assert len(found(*PAIRS[:2], rate=100_000, engine=SPARK)) == 1


def random_queries(seed: int) -> Iterator[tuple[list[WovenJoin], CostModel, dict[str, Any]]]:
    rng = random.Random(seed)
    for _ in range(15):
        alternatives = rng.choice([1, 3, 8, 30])
        filters = [
            f"a.v = {rng.randrange(alternatives)} AND b.w = {50 + rng.randrange(alternatives)}"
            for _ in range(rng.randint(2, 12))
        ]
        how: dict[str, Any] = {
            "rate": int(10 ** rng.uniform(1, 6.5)),
            "distinct": {"k": int(10 ** rng.uniform(0.5, 4)), "v": 100, "w": 100},
            "ranges_s": [rng.choice([10, 10, 60, 3_600]) for _ in filters],
        }
        yield *joining(*filters, **how), {"filters": filters, **how}


@pytest.mark.parametrize("seed", range(4))
def test_it_is_never_worse_than_one_join_or_one_for_each(seed: int) -> None:
    for members, cost, _ in random_queries(seed):
        chosen = parted(members, cost)
        assert sorted(each.query for part in chosen.values() for each in part) == sorted(
            each.query for each in members
        )
        total = sum(price(part, cost) for part in chosen.values())
        least = min(price(members, cost), sum(price([member], cost) for member in members))
        assert total <= least * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_declarations_does_not_matter(seed: int) -> None:
    for members, cost, how in random_queries(seed):
        filters, names = how.pop("filters"), [member.query for member in members]
        order = random.Random(seed).sample(range(len(names)), len(names))
        how["ranges_s"] = [how["ranges_s"][n] for n in order]
        others, other_cost = joining(*(filters[n] for n in order), names=[names[n] for n in order], **how)
        assert by_name(parted(members, cost)) == by_name(parted(others, other_cost))


def by_name(chosen: dict[str, list[WovenJoin]]) -> dict[str, set[str]]:
    return {name: {member.query for member in part} for name, part in chosen.items()}


def test_a_part_that_a_query_was_given_stays_its_part() -> None:
    members, cost = joining(*PAIRS[:4], "a.v = 0 AND b.w = 50", rate=10)
    assert by_name(parted(members, cost)) == {"q0": {f"q{n}" for n in range(5)}}
    given = {"q0": "x", "q1": "x", "q2": "y"}
    chosen = by_name(parted(members, cost, given=given))
    assert {"q0", "q1"} <= chosen["x"]
    assert "q2" in chosen["y"]
    assert chosen.keys() == {"x", "y"}  # the others go to what is there
    members, cost = joining(*PAIRS[:4], "a.v = 0 AND b.w = 50", rate=1_000_000)
    chosen = by_name(parted(members, cost, given=given))
    assert chosen == {"x": {"q0", "q1", "q4"}, "y": {"q2"}, "q3": {"q3"}}


@pytest.mark.parametrize("rate", [100, 30_000, 3_000_000])
def test_what_is_looked_at_grows_with_the_queries_alone(rate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    added_by = parts._Part.added_by

    def counted(part: parts._Part, other: parts._Part) -> float:
        nonlocal looks
        looks += 1
        return added_by(part, other)

    monkeypatch.setattr(parts._Part, "added_by", counted)
    members, cost = joining(*(f"a.v = {n} AND b.w = {n + 1_000}" for n in range(300)), rate=rate)
    parted(members, cost)
    assert looks < 20 * len(members)
