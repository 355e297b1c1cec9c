"""Queries that differ from a given one in constants and windows: what a shared plan computes at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tests.differential.queries import KINDS, OVER_A_QUERY, RandomQuery
from tests.differential.workloads import RandomWorkload, has_rows, random_workload

from plait.benchmarks.planning.model import Among, AnyOf, Constant, InstantWindow, Negation, TickWindow
from plait.benchmarks.planning.printer import Printer
from plait.deployment.fragments import Fragment, Way
from plait.deployment.lowering import Engines, fragments
from plait.engines.duckdb import Database
from plait.planners import DEFAULT_PLANNER, driver

DRAWS = 6
VARIANTS, MORE = 1, 6  # of each query, and of each that can be woven
INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
# The classes whose variants one operator computes, unless they differ in one of these.
WOVEN = ("filter", "aggregate", "join")
TOLD_APART = (Among, AnyOf, Negation)
# Classes of which Spark computes most queries without the database.
ON_SPARK = ("filter", "join", "aggregate", "aggregate")


def with_variants(
    workload: RandomWorkload, count: int, rng: random.Random, *, more: int = 0
) -> RandomWorkload:
    """The workload with so many variants of each of its queries that can have some, which have rows too.

    Of the classes that are woven there are `more`, which differ only in what a family leaves to each query.
    """
    added: list[RandomQuery] = []
    with Database(threads=1) as database:
        for query in workload.queries:
            if query.block is None or query.kind == OVER_A_QUERY:
                continue
            for number in range(count + more if query.kind in WOVEN else count):
                for _ in range(DRAWS):
                    kept = TOLD_APART if number >= count else ()
                    variant = _variant(query, f"{query.name}v{number}", rng, kept)
                    if has_rows(replace(workload, queries=(variant,)), variant.name, database):
                        added.append(variant)
                        break
    return replace(workload, queries=(*workload.queries, *added))


def shared_workload(seed: int) -> RandomWorkload:
    """Queries of all classes, a good part of them in families. In half of the workloads all streams are
    Parquet, which the database reads itself."""
    drawn = random_workload(seed, (*KINDS, *WOVEN, *WOVEN))
    made = with_variants(drawn, VARIANTS, random.Random(seed), more=MORE)
    return made.of_parquet() if seed % 2 else made


def woven_workload(seed: int, *, cuts: int = 3) -> RandomWorkload:
    """Queries that Spark computes without the database, most of them in families."""
    drawn = random_workload(seed, ON_SPARK, cuts=cuts)
    made = with_variants(drawn, VARIANTS, random.Random(seed), more=MORE)
    refused = {part.only.query.lower() for part in on_spark(made) if part.way is Way.SHARED}
    return replace(made, queries=tuple(query for query in made.queries if query.name not in refused))


def on_spark(workload: RandomWorkload) -> Sequence[Fragment]:
    """What runs if Spark computes all that it can."""
    loaded = workload.load()
    deployment = driver.plan(loaded, DEFAULT_PLANNER).deployment
    return fragments(deployment, loaded.catalog, together=True, engines=Engines.SPARK)


def _variant(query: RandomQuery, name: str, rng: random.Random, kept: tuple[type, ...]) -> RandomQuery:
    """Joins at ticks need the same ticks, so all slides change alike. Predicates that are `kept` do not."""
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

    block = _mapped(query.block, changed, kept)
    return RandomQuery(name, query.kind, Printer(rng).query(name, block), block)


def _mapped(part: Any, change: Callable[[Any], Any], kept: tuple[type, ...]) -> Any:
    """A tree of dataclasses and tuples with every part changed, from the leaves upwards, but for those that
    are kept."""
    if isinstance(part, tuple):
        return tuple(_mapped(each, change, kept) for each in part)
    if isinstance(part, kept) or not is_dataclass(part) or isinstance(part, type):
        return part
    inside = {field.name: _mapped(getattr(part, field.name), change, kept) for field in fields(part)}
    return change(replace(part, **inside))
