"""What many queries cost together, against plain Spark and against a single one.

Each comparison runs both sides over the same files in the same warm Spark, and compares their rows. What is
run several times is run in turn, and the median counts. README.md says what is measured and what it means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from plait import language
from plait.benchmarks.report import Claim, Observer, Report
from plait.benchmarks.sharing import aggregates, floor, joins, live, sides
from plait.benchmarks.sharing.sides import Measured, Tables, Together
from plait.cost.units import DUCKDB, SPARK
from plait.planners.driver import plan
from plait.spark.execution import Session as SparkSession
from plait.spark.session import session, stop

AGGREGATE_COUNTS = (1, 20, 50, 200, 1000)
GROUPS = (100, 10_000, 1_000_000)
JOIN_COUNTS = (10, 100, 300)
RANGE_COUNTS = (10, 300)
PLAIN_AGGREGATES, PLAIN_JOINS = 20, 10


@dataclass(frozen=True)
class _Size:
    """How many rows the aggregates read, and those of ever more groups; in how many files, each a
    micro-batch; how often what is compared in turn runs, and what is on Spark alone; and for how long what
    goes with the clock."""

    rows: int
    grouped_rows: int
    files: int
    runs: int
    spark_runs: int
    live_s: float


_FULL, _QUICK = _Size(2_000_000, 1_000_000, 10, 5, 3, 120.0), _Size(300_000, 75_000, 3, 3, 1, 20.0)


def compare(quick: bool, observer: Observer) -> Report:
    """All of them, one after the other."""
    report = Report("sharing", quick)
    size = _QUICK if quick else _FULL
    with TemporaryDirectory(prefix="plait-sharing-") as name, _spark() as session:
        folder = Path(name)
        _live(session, size, report, observer)  # first, in a Spark that has not much behind it yet
        _aggregates(folder / "readings", session, size, report, observer)
        _groups(folder, session, size, report, observer)
        _joins(folder / "airline", session, size, report, observer)
    draw_charts(report)
    return report


def _aggregates(folder: Path, session: SparkSession, size: _Size, report: Report, observer: Observer) -> None:
    observer("writing the rows of window aggregates")
    aggregates.write_readings(folder, size.rows, size.files)
    windows = aggregates.random_windows(max(AGGREGATE_COUNTS))
    report.figures["aggregates_distinct_windows"] = len({(w.range_s, w.slide_s) for w in windows})
    few = windows[:PLAIN_AGGREGATES]
    kept = [each.name for each in few]

    def together(count: int, engines: str = "any") -> Together:
        sql = aggregates.sql(folder, windows[:count])
        return Together(sql, session, engines=engines, kept=kept if count >= len(kept) else ())

    observer("warming up")
    together(PLAIN_AGGREGATES)()
    measured = _in_turn({f"aggregates_{n}": together(n) for n in AGGREGATE_COUNTS}, size.runs, observer)
    for key, each in measured.items():
        report.figures |= _costs(key, each)
    spark_only = _warm(
        together(PLAIN_AGGREGATES, "spark"),
        size.spark_runs,
        observer,
        f"{PLAIN_AGGREGATES} aggregates on Spark's operators alone",
    )
    observer(f"{PLAIN_AGGREGATES} aggregates on plain Spark")
    plain = sides.plain_spark(aggregates.plain_queries(folder, few), session)
    report.figures |= _costs("aggregates_plain_spark_20", plain) | _costs(
        "aggregates_spark_only_20", spark_only
    )
    one, ours = measured["aggregates_1"], measured[f"aggregates_{PLAIN_AGGREGATES}"]
    _speedup(report, "aggregates_speedup_over_plain_spark_at_20", plain, ours, 15)
    _speedup(report, "aggregates_spark_only_speedup_over_plain_spark_at_20", plain, spark_only, 4)
    _cost_ratio(report, "aggregates_cost_of_200_over_1", measured["aggregates_200"], one, 1.5)
    _cost_ratio(report, "aggregates_cost_of_1000_over_1", measured["aggregates_1000"], one, 2.5)
    compared = {f"among {n}": measured[f"aggregates_{n}"] for n in AGGREGATE_COUNTS if n >= PLAIN_AGGREGATES}
    _same_rows(report, "aggregates", compared | {"on Spark alone": spark_only}, plain.tables)
    observer("the floor: Spark's micro-batches without work, and DuckDB without Spark")
    empty_s = median(floor.empty_batches_s(folder, session) for _ in range(size.runs))
    database_s = median(floor.database_s(folder, few) for _ in range(size.runs))
    in_batches_s = median(floor.database_s(folder, few, batches=True) for _ in range(size.runs))
    report.figures |= {
        "floor_empty_batches_seconds": round(empty_s, 2),
        "floor_database_seconds": round(database_s, 2),
        "floor_database_in_batches_seconds": round(in_batches_s, 2),
        "aggregates_20_over_floor_in_batches": round(ours.seconds / (empty_s + in_batches_s), 3),
    }
    _claim(
        report,
        "aggregates_20_over_floor",
        ours.seconds / (empty_s + database_s),
        1.5,
        below=True,
        reason=f"in batches of a file each, DuckDB alone takes {in_batches_s:.2f} s, not {database_s:.2f} s",
    )


def _groups(folder: Path, session: SparkSession, size: _Size, report: Report, observer: Observer) -> None:
    """Both engines with ever more groups, and whether the plan chooses the quicker one."""
    regrets = []
    for groups in GROUPS:
        observer(f"writing the rows of {groups:,} groups")
        stored = folder / f"groups_{groups}"
        aggregates.write_readings(stored, size.grouped_rows, size.files, groups)
        sql = aggregates.having_sql(stored, aggregates.ROWS_PER_S / groups)
        kept = [f"busiest_{range_s}_{slide_s}" for range_s, slide_s in aggregates.FEW_WINDOWS]
        keys = {engine: f"groups_{groups}_{engine}" for engine in (DUCKDB, SPARK)}
        cases = {key: Together(sql, session, engines=engine, kept=kept) for engine, key in keys.items()}
        measured = _in_turn(cases, size.spark_runs, observer)
        for key, each in measured.items():
            report.figures |= _costs(key, each)
        ways = {engine: measured[key] for engine, key in keys.items()}
        (tree,) = plan(language.load_text(sql)).deployment.trees
        report.figures[f"groups_{groups}_chosen"] = tree.engine
        regrets.append(ways[tree.engine].seconds / min(each.seconds for each in ways.values()))
        claim = f"{groups:,} groups: the rows of both engines are the same"
        _no_difference(report, claim, "Spark", {"": ways[DUCKDB]}, ways[SPARK].tables)
    _claim(report, "finals_choice_regret_max", max(regrets), 1.2, below=True)


def _joins(folder: Path, session: SparkSession, size: _Size, report: Report, observer: Observer) -> None:
    observer("writing the rows of the airline")
    joins.write_airline(folder, size.files)
    few, few_ranges = joins.single_flights(PLAIN_JOINS), joins.ranges_of_flights(PLAIN_JOINS)

    def together(gates: Sequence[joins.Gate], engines: str = "any") -> Together:
        kept = [gate.name for gate in gates[:PLAIN_JOINS]]
        return Together(joins.sql(folder, gates), session, engines=engines, kept=kept)

    observer("warming up")
    together(few)()
    cases = {f"joins_{n}": together(joins.single_flights(n)) for n in JOIN_COUNTS}
    cases |= {f"range_filters_{n}": together(joins.ranges_of_flights(n)) for n in RANGE_COUNTS}
    measured = _in_turn(cases, size.runs, observer)
    for key, each in measured.items():
        report.figures |= _costs(key, each)
    spark_only = _warm(
        together(few, "spark"), size.spark_runs, observer, f"{PLAIN_JOINS} joins on Spark's operators alone"
    )
    observer(f"{PLAIN_JOINS} joins on plain Spark")
    plain = sides.plain_spark(joins.plain_queries(folder, few), session)
    report.figures |= _costs("joins_plain_spark_10", plain) | _costs("joins_spark_only_10", spark_only)
    ours = measured["joins_10"]
    _speedup(report, "joins_speedup_over_plain_spark_at_10", plain, ours, 8)
    _speedup(report, "joins_spark_only_speedup_over_plain_spark_at_10", plain, spark_only, 4)
    _cost_ratio(report, "joins_cost_of_300_over_10", measured["joins_300"], ours, 1.5)
    ranges = measured["range_filters_300"], measured["range_filters_10"]
    _cost_ratio(report, "range_filters_cost_of_300_over_10", *ranges, 1.7)
    compared = {f"among {n}": measured[f"joins_{n}"] for n in JOIN_COUNTS}
    _same_rows(report, "joins", compared | {"on Spark alone": spark_only}, plain.tables)
    observer("the join without ranges on plain Spark")
    rows = sides.plain_rows(joins.plain_query_of_all(folder), session)
    compared = {f"among {n}": measured[f"range_filters_{n}"] for n in RANGE_COUNTS}
    _same_rows(
        report, "range filters", compared, {gate.name: joins.of_gate(gate, rows) for gate in few_ranges}
    )


def _live(session: SparkSession, size: _Size, report: Report, observer: Observer) -> None:
    observer(f"the airline's {live.AIRLINE_QUERIES} queries, {live.AIRLINE_TIMES} times as fast as it is")
    airline = live.run_airline(session, size.live_s)
    report.figures |= {
        "airline_300_batch_seconds": round(airline.batch_s, 3),
        "airline_300_batch_p95_seconds": round(airline.batch_p95_s, 3),
        "airline_300_result_rows": airline.rows,
        "airline_300_memory_mb": round(airline.memory_mb),
        "airline_300_state_mb": round(airline.state_mb, 1),
    }
    _claim(report, "airline_300_batch_time_over_trigger", airline.batch_s / live.TRIGGER_S, 1.0, below=True)
    observer(f"latency of {live.PLUG_QUERIES} queries at {live.PLUG_ROWS_PER_S:,} rows/s")
    found = live.latencies_s(session, size.live_s)
    report.figures["latency_ticks"] = len(found)
    _claim(report, "latency_p50_seconds", median(found), 0.5, below=True)
    _claim(report, "latency_p95_seconds", quantiles(found, n=20)[-1], 1.0, below=True)


def draw_charts(report: Report) -> None:
    """Seconds over queries, and over groups, as far as they were measured."""
    of_aggregates = {
        "Plait": "aggregates_{}_seconds",
        "Plait, on Spark alone": "aggregates_spark_only_{}_seconds",
        "plain Spark": "aggregates_plain_spark_{}_seconds",
    }
    report.draw("aggregates", "Window aggregates over the same rows", "queries", "seconds", of_aggregates)
    of_joins = {
        "Plait": "joins_{}_seconds",
        "Plait, on Spark alone": "joins_spark_only_{}_seconds",
        "plain Spark": "joins_plain_spark_{}_seconds",
        "Plait, queries with ranges": "range_filters_{}_seconds",
    }
    report.draw("joins", "Joins of three streams over the same rows", "queries", "seconds", of_joins)
    of_groups = {"DuckDB": "groups_{}_duckdb_seconds", "Spark": "groups_{}_spark_seconds"}
    report.draw("groups", "Window aggregates by many groups", "groups", "seconds", of_groups)


def _warm(case: Callable[[], Measured], runs: int, observer: Observer, what: str) -> Measured:
    """The run of median time, after one that does not count: the many queries of plain Spark warm up Java by
    themselves."""
    observer("warming up")
    case()
    return _in_turn({what: case}, runs, observer)[what]


def _in_turn(
    cases: Mapping[str, Callable[[], Measured]], runs: int, observer: Observer
) -> dict[str, Measured]:
    """The run of median time of each."""
    found: dict[str, list[Measured]] = {key: [] for key in cases}
    for number in range(runs):
        for key, case in cases.items():
            observer(key + (f", run {number + 1} of {runs}" if runs > 1 else ""))
            found[key].append(case())
    return {key: sorted(each, key=lambda m: m.seconds)[len(each) // 2] for key, each in found.items()}


def _costs(key: str, measured: Measured) -> dict[str, float]:
    return {
        f"{key}_seconds": round(measured.seconds, 2),
        f"{key}_result_rows": measured.rows,
        f"{key}_result_rows_per_s": round(measured.rows / measured.seconds),
        f"{key}_memory_mb": round(measured.memory_mb),
        f"{key}_state_mb": round(measured.state_mb, 1),
    }


def _speedup(report: Report, key: str, plain: Measured, ours: Measured, at_least: float) -> None:
    _claim(report, key, plain.seconds / ours.seconds, at_least, below=False)


def _cost_ratio(report: Report, key: str, many: Measured, few: Measured, at_most: float) -> None:
    _claim(report, key, many.seconds / few.seconds, at_most, below=True)


def _claim(report: Report, key: str, value: float, goal: float, *, below: bool, reason: str = "") -> None:
    holds = value <= goal if below else value >= goal
    report.figures[key] = round(value, 3)
    why_not = "" if holds else f"{value:.2f} is not {'below' if below else 'above'} {goal:g}"
    if reason and not holds:
        why_not += f": {reason}"
    report.claims.append(Claim(key, "goal", goal, round(value, 3), holds, why_not))


def _same_rows(report: Report, what: str, ours: dict[str, Measured], plain: Tables) -> None:
    report.figures[f"{what.replace(' ', '_')}_queries_compared"] = len(plain) * len(ours)
    _no_difference(report, f"{what}: the rows are those of plain Spark", "plain Spark", ours, plain)


def _no_difference(
    report: Report, claim: str, source: str, ours: dict[str, Measured], theirs: Tables
) -> None:
    """That all rows are equal, of which there have to be some: `ours` are by the way they were computed."""
    wrong = [
        f"{name} {way}".strip()
        for way, each in ours.items()
        for name in sides.differences(each.tables, theirs)
    ]
    has_rows = any(table.num_rows for table in theirs.values())
    why_not = ", ".join(wrong) if has_rows else "there were no rows to compare"
    report.claims.append(Claim(claim, source, 0, len(wrong), has_rows and not wrong, why_not))


@contextmanager
def _spark() -> Iterator[SparkSession]:
    started = session(settings={"spark.sql.shuffle.partitions": "2"})
    try:
        yield started
    finally:
        stop(started)
