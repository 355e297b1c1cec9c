"""Workloads of many queries in which half share something in disguise, and it is known what.

Half of the queries come in pairs: the same query built and spelled differently (`WHOLE`), or two queries
around the same aggregate (`SUBPLAN`). The others are made at random; they may be equal by chance, so that
what is found beyond the planted pairs has to be evaluated, not called false.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from plait.benchmarks.planning.disguise import disguise
from plait.benchmarks.planning.generator import GeneratedCatalog, QueryGenerator, generate_catalog
from plait.benchmarks.planning.model import (
    Block,
    BlockItem,
    Equality,
    OrderKey,
    Output,
    Select,
    columns_of_item,
    parts,
)
from plait.benchmarks.planning.printer import Printer, print_relation

STREAMS = 8
TABLES = 3
READABLE_QUERIES = 50  # queries that others may read by name


class Shared(Enum):
    WHOLE = "whole query"
    SUBPLAN = "sub-plan"


@dataclass(frozen=True)
class PlantedPair:
    first: str
    second: str
    shared: Shared


@dataclass(frozen=True)
class PlantedWorkload:
    catalog: GeneratedCatalog
    statements: tuple[str, ...]
    pairs: tuple[PlantedPair, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.statements)


def generate_workload(queries: int, seed: int = 0) -> PlantedWorkload:
    """`queries` queries of all classes: two single ones, a pair, and so on."""
    rng = random.Random(seed)
    catalog = generate_catalog(rng, STREAMS, TABLES)
    generator = QueryGenerator(rng, catalog)
    kinds = list(generator.kinds)
    statements = [print_relation(relation) for relation in (*catalog.streams, *catalog.tables)]
    pairs: list[PlantedPair] = []
    made = 0

    def add(block: Block, printer: Printer) -> str:
        nonlocal made
        made += 1
        statements.append(printer.query(f"q{made}", block))
        return f"q{made}"

    def single() -> None:
        kind = kinds[made % len(kinds)]
        block = generator.query(kind)
        name = add(block, Printer(rng))
        if kind != "over a query" and len(generator.named) < READABLE_QUERIES:
            generator.named[name] = block

    while made < queries:
        single()
        if made % 4 == 2 and made + 2 <= queries:
            if len(pairs) % 5 == 4:
                first, second = _around_one_aggregate(generator)
                shared = Shared.SUBPLAN
            else:
                first = generator.query(rng.choice(kinds))
                second, shared = disguise(first, rng), Shared.WHOLE
            pairs.append(PlantedPair(add(first, Printer()), add(second, Printer(rng)), shared))
    return PlantedWorkload(catalog, tuple(statements), tuple(pairs))


def _around_one_aggregate(generator: QueryGenerator) -> tuple[Block, Block]:
    """Two queries that use all of one aggregate: joined with a table, and its first rows.

    The aggregate has no condition on its keys: the join could make it superfluous (`key IS NOT NULL`), and a
    planner that leaves it out there is right, though it then shares less.
    """
    aggregate = next(block for block in _aggregates(generator) if _is_shareable(block))
    joined, table = BlockItem(generator.key(), aggregate), generator.table()
    names = [output.name for output in aggregate.outputs if output.expression in aggregate.keys]
    key = next(column for column in columns_of_item(joined) if column.name in names)
    partner = next(column for column in columns_of_item(table) if column.type == key.type)
    outputs = tuple(
        Output(f"o{index}", column) for index, column in enumerate((*columns_of_item(joined), partner))
    )
    first = Select(outputs, (joined, table), (Equality((key, partner)),))

    ranked = BlockItem(generator.key(), disguise(aggregate, generator.rng))
    columns = columns_of_item(BlockItem(ranked.key, aggregate))
    outputs = tuple(Output(f"o{index}", column) for index, column in enumerate(columns))
    order = (OrderKey(outputs[-1].name, descending=True),)
    return first, Select(outputs, (ranked,), order=order, limit=3)


def _aggregates(generator: QueryGenerator) -> Iterator[Select]:
    while True:
        yield generator.aggregate_block()


def _is_shareable(aggregate: Select) -> bool:
    conditioned = {part for condition in aggregate.conditions for part in parts(condition)}
    return bool(aggregate.keys) and not aggregate.having and not conditioned.intersection(aggregate.keys)
