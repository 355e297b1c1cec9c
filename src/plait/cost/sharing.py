"""What queries cost that are computed together, on each engine that can: trees of windows, joins, and
selections of rows.

A tree (aggregates paper, §3) takes in λ rows a second and makes partials of them; each partial goes into as
many windows as overlap, Ω, and the windows give finals:

    partials_per_s = min(λ, E · groups)
    cores = (λ · row + partials_per_s · Ω · merge + finals_per_s · final) / 1,000,000

with E, the edges a second of all windows, and Ω, the sum of range / slide over them. A selection, which is
one pass over a stream for all queries that filter it likewise, takes rows in and gives rows, as any operator
does (Eq. 4 of the federation paper). A join looks at all rows that arrive, takes in and keeps those that a
query wants, and makes combinations, of which queries get theirs:

    cores = (arriving · a + taken in · t + kept · k + combinations · c + results · r) / 1,000,000

where rows that are kept are looked at in each micro-batch, one a second. How many each of these are,
`plait.sharing.demands` says.

The engines are chosen for a **group** at once: the families (trees and joins) of queries that are connected
by the streams they read. The database computes them in one StreamingQuery, which reads each stream once. A
family that goes to Spark is a StreamingQuery of its own and reads its streams once more, and a stream with
several readers has an intake, which is another. So a second of the streams takes

    busy_s = greatest b + Σ b / cores of a process + (rows read · scan + Σ cores on Spark) / cores of the site
             + Σ cores in the database / cores of a process

with b, what a micro-batch takes besides its rows (planning, logs, commits), for each StreamingQuery, at one
micro-batch a second. That is work of Spark's driver, which is one process, as the database is: more cores
elsewhere are no help. Nor is a single micro-batch ever shorter, hence the greatest b: a group is torn apart
only if it gains more than that.

Compared are the database alone, the families that by themselves gain more than they add, and all families
that Spark can compute. Among all 2ⁿ choices there may be one that is a little better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from plait.cost.units import DUCKDB, SPARK, UnitCosts
from plait.space import OperatorKind

MICROSECONDS = 1_000_000
# What a process can keep busy, a database or Spark's driver; and what a site has that does not say.
PROCESS_CORES = 2.0


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


@dataclass(frozen=True)
class JoinWork:
    """What a join does between the rows that arrive and those that it gives: rows that are taken in each
    second, rows that are kept, and combinations that are made each second."""

    taken_rows_per_s: float
    kept_rows: float
    combinations_per_s: float


def join_cores(
    work: JoinWork, input_rows_per_s: float, output_rows_per_s: float, unit_costs: UnitCosts
) -> dict[str, float]:
    """By engine."""
    return {
        engine: (
            input_rows_per_s * unit.arriving_us
            + work.taken_rows_per_s * unit.taken_us
            + work.kept_rows * unit.kept_us
            + work.combinations_per_s * unit.combination_us
            + output_rows_per_s * unit.result_us
        )
        / MICROSECONDS
        for engine, unit in unit_costs.joins.items()
    }


def selection_cores(
    input_rows_per_s: float, output_rows_per_s: float, unit_costs: UnitCosts
) -> dict[str, float]:
    """By engine."""
    units = {engine: unit_costs.of(engine, OperatorKind.SELECT) for engine in (SPARK, DUCKDB)}
    return {
        engine: (input_rows_per_s * unit.input_us_per_row + output_rows_per_s * unit.output_us_per_row)
        / MICROSECONDS
        for engine, unit in units.items()
    }


def reading_cores(rows_per_s: float, unit_costs: UnitCosts) -> float:
    """What it takes to read sources once more."""
    return rows_per_s * unit_costs.of(SPARK, OperatorKind.SCAN).output_us_per_row / MICROSECONDS


@dataclass(frozen=True)
class Family:
    """A tree or a join: the streams that it reads, by key, its cores by engine, and those for reading."""

    streams: frozenset[str]
    cores: Mapping[str, float]
    reading_cores: float
    can_be_on_spark: bool


@dataclass(frozen=True)
class Group:
    """Families that are connected by streams. `other_streams` are what the group's queries of no family read,
    which the database computes; `rates_rows_per_s` is of all streams."""

    families: Sequence[Family]
    other_streams: frozenset[str]
    rates_rows_per_s: Mapping[str, float]


def for_spark(group: Group, site_cores: float | None, unit_costs: UnitCosts) -> frozenset[int]:
    """Which families, by their places, Spark is to compute; of equal choices that with the fewest."""
    there = PROCESS_CORES if site_cores is None else site_cores
    able = frozenset(place for place, each in enumerate(group.families) if each.can_be_on_spark)
    gaining = frozenset(place for place in able if _gains(group.families[place], there, unit_costs))
    return min(
        (frozenset[int](), gaining, able), key=lambda chosen: _busy_s(group, chosen, there, unit_costs)
    )


def _gains(family: Family, site_cores: float, unit_costs: UnitCosts) -> bool:
    in_process = family.cores[DUCKDB] - unit_costs.micro_batch_s[SPARK]
    on_site = family.cores[SPARK] + family.reading_cores
    return on_site / site_cores < in_process / min(site_cores, PROCESS_CORES)


def _busy_s(group: Group, on_spark: frozenset[int], site_cores: float, unit_costs: UnitCosts) -> float:
    """How long a second of the streams takes with these families on Spark."""
    apart = [group.families[place] for place in sorted(on_spark)]
    kept = [each for place, each in enumerate(group.families) if place not in on_spark]
    kept_streams = group.other_streams.union(*(each.streams for each in kept))
    readers = Counter([*kept_streams, *(stream for each in apart for stream in each.streams)])
    intakes = [stream for stream, number in readers.items() if number > 1]
    # Summed without rounding: streams come in any order.
    read = [group.rates_rows_per_s[stream] for stream in (*kept_streams, *intakes)]
    batch_s = unit_costs.micro_batch_s
    in_process = (
        len(apart) * batch_s[SPARK]
        + (bool(kept_streams) + len(intakes)) * batch_s[DUCKDB]
        + sum(each.cores[DUCKDB] for each in kept)
    )
    on_site = reading_cores(fsum(read), unit_costs) + sum(
        each.reading_cores + each.cores[SPARK] for each in apart
    )
    longest_s = batch_s[SPARK if apart else DUCKDB]
    return longest_s + in_process / min(site_cores, PROCESS_CORES) + on_site / site_cores
