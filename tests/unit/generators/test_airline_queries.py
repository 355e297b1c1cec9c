"""The airline's queries come in the paper's mix, are the same for the same seed, and are understood."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import plait
from plait.generators.airline_queries import airline_queries

EXAMPLE = Path(__file__).parents[3] / "examples" / "airline.sql"


def kinds(statements: tuple[str, ...]) -> Counter[str]:
    return Counter(statement.split()[3].rsplit("_", 1)[0] for statement in statements)


@pytest.mark.parametrize(
    ("count", "gate", "terminal", "monitoring"), [(300, 240, 45, 15), (20, 16, 3, 1), (1, 1, 0, 0)]
)
def test_the_mix_is_the_papers(count: int, gate: int, terminal: int, monitoring: int) -> None:
    mix = {"gate": gate, "terminal": terminal, "monitoring": monitoring}
    assert kinds(airline_queries(count, seed=1)) == Counter({k: n for k, n in mix.items() if n})


def test_the_seed_decides() -> None:
    assert airline_queries(50, seed=1) == airline_queries(50, seed=1)
    assert airline_queries(50, seed=1) != airline_queries(50, seed=2)


def test_all_are_understood_and_admitted() -> None:
    declarations = EXAMPLE.read_text().split("-- Gate agents")[0]
    queries = airline_queries(200, seed=3, sites=("atlanta", "newyork"))
    session = plait.open_text(declarations + "\n".join(queries), base=EXAMPLE.parent)
    assert len(session.queries) == 200


def test_monitoring_is_of_many_shapes() -> None:
    queries = [q for q in airline_queries(2000, seed=4) if " monitoring_" in q]
    sources = Counter(
        tuple(name for name in ("flights", "checkins", "baggage", "weather", "sales") if f"{name} " in query)
        for query in queries
    )
    assert len(sources) == 13
    assert 0.5 < sum("SLIDE" in query for query in queries) / len(queries) < 0.9
