"""Small random data for generated catalogs: NULLs, equal timestamps, rows out of order, times far away."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta
from decimal import Decimal

from plait.benchmarks.planning.generator import WORDS, GeneratedCatalog
from plait.benchmarks.planning.model import Relation

START = datetime(2026, 3, 2, 6, 0, 0)
FAR_TIMES = (
    datetime(1970, 1, 1),  # a bad record: event time begins after it
    datetime(1970, 1, 1, 0, 0, 1),
    datetime(2001, 9, 9, 1, 46, 40),
    datetime(2240, 1, 1),
)


def random_rows(
    catalog: GeneratedCatalog, rng: random.Random, most: int = 12
) -> dict[str, list[tuple[object, ...]]]:
    """Rows for every stream and table, by name; a few have none."""
    return {
        relation.name: [_row(relation, rng) for _ in range(rng.choice((0, 1, *[most] * 8)))]
        for relation in (*catalog.streams, *catalog.tables)
    }


def _row(relation: Relation, rng: random.Random) -> tuple[object, ...]:
    return tuple(
        _event_time(rng) if name == relation.event_time else random_value(type_, rng)
        for name, type_ in relation.columns
    )


def _event_time(rng: random.Random) -> datetime | None:
    chance = rng.random()
    if chance < 0.02:
        return None
    if chance < 0.06:
        return rng.choice(FAR_TIMES)
    # Whole seconds meet the edges of windows, and each other; a few rows just miss them.
    return START + timedelta(seconds=rng.randint(0, 45), microseconds=rng.choice((0, 0, 0, 1, 999_999)))


def random_value(type_: str, rng: random.Random) -> object:
    """A value of a small domain, or NULL; the ends of types and odd doubles are among them."""
    if rng.random() < 0.08:
        return None
    match type_:
        case "INT":
            return rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 5, -7, 2_147_483_647))
        case "BIGINT":
            return rng.choice((0, 1, 2, 3, 5, 9_000_000_000))
        case "STRING":
            return rng.choice((*WORDS, ""))
        case "BOOLEAN":
            return rng.random() < 0.5
        case "DOUBLE":
            return rng.choice((0.0, -0.0, 0.1, 0.5, 2.25, -2.25, 1e12, math.inf, math.nan))
        case "DECIMAL(9,2)":
            return Decimal(rng.choice(("0.50", "2.25", "4.00", "-1.10", "9999999.99")))
        case _:
            return START + timedelta(seconds=rng.randint(0, 90))
