"""What queries cost that are computed together, on each engine that can: trees of windows, and joins.

A tree (aggregates paper, §3) takes in λ rows a second and makes partials of them; each partial goes into as
many windows as overlap, Ω, and the windows give finals:

    partials_per_s = min(λ, E · groups)
    cores = (λ · row + partials_per_s · Ω · merge + finals_per_s · final) / 1,000,000

with E, the edges a second of all windows, and Ω, the sum of range / slide over them. A join takes its rows
in and gives its combinations, as any operator does (Eq. 4 of the federation paper).

An engine is chosen by how long it would be busy: its cores, over those that it can use. Spark can use all of
a site's, the database those of one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plait.cost.units import DUCKDB, SPARK, UnitCosts
from plait.space import OperatorKind

MICROSECONDS = 1_000_000
# What a database can keep busy, and what a site is taken to have that does not say.
DATABASE_CORES = 2.0


@dataclass(frozen=True)
class TreeSize:
    """λ, E, Ω, the groups of a tick, and the rows that all windows give each second."""

    rate_rows_per_s: float
    edges_per_s: float
    overlap: float
    groups: float
    finals_per_s: float


def tree_cores(size: TreeSize, unit_costs: UnitCosts) -> dict[str, float]:
    """By engine."""
    partials_per_s = min(size.rate_rows_per_s, size.edges_per_s * size.groups)
    return {
        engine: (
            size.rate_rows_per_s * unit.row_us
            + partials_per_s * size.overlap * unit.merge_us
            + size.finals_per_s * unit.final_us
        )
        / MICROSECONDS
        for engine, unit in unit_costs.trees.items()
    }


def join_cores(input_rows_per_s: float, output_rows_per_s: float, unit_costs: UnitCosts) -> dict[str, float]:
    """By engine."""
    units = {engine: unit_costs.of(engine, OperatorKind.WINDOW_JOIN) for engine in (SPARK, DUCKDB)}
    return {
        engine: (input_rows_per_s * unit.input_us_per_row + output_rows_per_s * unit.output_us_per_row)
        / MICROSECONDS
        for engine, unit in units.items()
    }


def best_engine(cores: Mapping[str, float], site_cores: float | None) -> str:
    """The engine that would be busy for the shortest time; of equal ones the first.

    >>> best_engine({"spark": 2.0, "duckdb": 1.0}, None), best_engine({"spark": 2.0, "duckdb": 1.0}, 16)
    ('duckdb', 'spark')
    """
    there = DATABASE_CORES if site_cores is None else site_cores
    usable = {SPARK: there, DUCKDB: min(there, DATABASE_CORES)}
    return min(cores, key=lambda engine: cores[engine] / usable[engine])
