"""Queries that differ from a given one in constants and windows: what a shared plan computes at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tests.differential.queries import OVER_A_QUERY, RandomQuery
from tests.differential.workloads import RandomWorkload, has_rows

from plait.benchmarks.planning.model import Constant, InstantWindow, TickWindow
from plait.benchmarks.planning.printer import Printer
from plait.engines.duckdb import Database

DRAWS = 6
INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def with_variants(workload: RandomWorkload, count: int, rng: random.Random) -> RandomWorkload:
    """The workload with so many variants of each of its queries that can have some, which have rows too."""
    added: list[RandomQuery] = []
    with Database(threads=1) as database:
        for query in workload.queries:
            if query.block is None or query.kind == OVER_A_QUERY:
                continue
            for number in range(count):
                for _ in range(DRAWS):
                    variant = _variant(query, f"{query.name}v{number}", rng)
                    if has_rows(replace(workload, queries=(variant,)), variant.name, database):
                        added.append(variant)
                        break
    return replace(workload, queries=(*workload.queries, *added))


def _variant(query: RandomQuery, name: str, rng: random.Random) -> RandomQuery:
    """Joins at ticks need the same ticks, so all slides change alike."""
    times = rng.choice((1, 1, 2))

    def changed(part: Any) -> Any:
        match part:
            case Constant(sql, type_) if type_ in INTEGERS and sql.lstrip("-").isdecimal():
                return replace(part, sql=str(int(sql) + rng.randint(-2, 2)))
            case TickWindow(range_s, slide_s, offset_s):
                return TickWindow(max(1, range_s + rng.randint(-2, 4)), slide_s * times, offset_s * times)
            case InstantWindow(range_s):
                return InstantWindow(max(1, range_s + rng.randint(-1, 2)))
            case _:
                return part

    block = _mapped(query.block, changed)
    return RandomQuery(name, query.kind, Printer(rng).query(name, block), block)


def _mapped(part: Any, change: Callable[[Any], Any]) -> Any:
    """A tree of dataclasses and tuples with every part changed, from the leaves upwards."""
    if isinstance(part, tuple):
        return tuple(_mapped(each, change) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    inside = {field.name: _mapped(getattr(part, field.name), change) for field in fields(part)}
    return change(replace(part, **inside))
