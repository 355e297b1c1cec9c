"""Changes one small thing in a query, so that it usually means something else."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from plait.benchmarks.planning.generator import WORDS
from plait.benchmarks.planning.model import (
    Aggregation,
    Block,
    Comparison,
    Constant,
    InstantWindow,
    Negation,
    OrderKey,
    OuterStep,
    RelationItem,
    RowWindow,
    Select,
    TickWindow,
    rebuild,
)

OPERATORS = ("<", "<=", ">", ">=", "=", "<>")
OTHER_AGGREGATE = {"min": "max", "max": "min", "stddev_samp": "var_pop", "var_pop": "stddev_samp"}


def vary(block: Block, rng: random.Random) -> Block:
    """The query with one change somewhere; the query itself if there is nothing to change."""
    changeable: list[Any] = []

    def note(node: Any) -> Any:
        if _changed(node, rng) != node:
            changeable.append(node)
        return node

    rebuild(block, note)
    if not changeable:
        return block
    target = rng.randrange(len(changeable))
    met = 0

    def change(node: Any) -> Any:
        nonlocal met
        if node == changeable[target]:
            met += 1
            if met == 1:
                return _changed(node, rng)
        return node

    return rebuild(block, change)


def _changed(node: Any, rng: random.Random) -> Any:
    match node:
        case Constant(sql, "INT" | "BIGINT"):
            return replace(node, sql=str(int(sql) + 1))
        case Constant(sql, "STRING") if "%" not in sql:
            others = [f"'{word}'" for word in WORDS if "'" not in word and f"'{word}'" != sql]
            return replace(node, sql=rng.choice(others))
        case Comparison(operator, _, _):
            return replace(node, operator=rng.choice([other for other in OPERATORS if other != operator]))
        case Negation(term):
            return term
        case Aggregation(function, _, _, None) if function in OTHER_AGGREGATE:
            return replace(node, function=OTHER_AGGREGATE[function])
        case Aggregation("count", argument, _, _) if argument is not None:
            return replace(node, argument=None)
        case Aggregation(_, _, _, filter_) if filter_ is not None:
            return replace(node, filter=None)
        case InstantWindow(range_s):
            return InstantWindow(range_s + 5)
        case TickWindow(range_s, slide_s, _):
            return replace(node, range_s=range_s + slide_s)
        case RowWindow(rows, _, _):
            return replace(node, rows=rows + 1)
        case OrderKey(output, descending):
            return OrderKey(output, not descending)
        case OuterStep("LEFT", RelationItem(_, relation, _), _) if relation.event_time is not None:
            return replace(node, kind="FULL")
        case Select() if node.limit is not None:
            return replace(node, limit=node.limit + 1)
        case Select() if node.having:
            return replace(node, having=())
        case Select() if node.conditions:
            dropped = rng.randrange(len(node.conditions))
            return replace(node, conditions=node.conditions[:dropped] + node.conditions[dropped + 1 :])
        case _:
            return node
