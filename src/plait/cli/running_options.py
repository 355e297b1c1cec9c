"""Options of commands that run queries, or say how they would run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from plait.cli.invocation import OneOf
from plait.deployment.lowering import Engines
from plait.planners import DEFAULT_PLANNER, PLANNERS

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def planner_option(function: Decorated) -> Decorated:
    return click.option(
        "--planner",
        default=DEFAULT_PLANNER,
        show_default=True,
        type=OneOf(PLANNERS),
        metavar="NAME",
        help="plait: queries run together; independent: every query by itself.",
    )(function)


def engines_option(function: Decorated) -> Decorated:
    return click.option(
        "--engines",
        default=Engines.ANY.value,
        show_default=True,
        type=click.Choice([each.value for each in Engines]),
        help="spark: nothing is computed outside Spark; duckdb: nothing but DuckDB computes.",
    )(function)
