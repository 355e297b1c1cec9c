"""Plait in Python: open SQL files, check, plan, evaluate and run them, read results.

The command line is a thin layer over this module, so that both always say the same. In a notebook a plan
shows itself as a picture, rows and comparisons as tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from plait import language
from plait.deployment.report import report_text
from plait.errors import InfeasibleError, PlaitError, Source, UnsupportedError, UserError, closest
from plait.expressions.types import Type
from plait.notices import Notice
from plait.picture.deployed import diagram_of
from plait.picture.dot import to_dot
from plait.picture.svg import to_svg
from plait.plan.nodes import sources_of
from plait.planners import DEFAULT_PLANNER, PLANNERS, driver
from plait.planners.base import PlanningStatus
from plait.planners.driver import PlanReport
from plait.quantity_text import bytes_per_s_text, counted, number_text
from plait.runtime import DEFAULT_RESULTS, DEFAULT_STATE
from plait.statistics import Statistics, declared
from plait.table_text import csv_text, json_value, table_text, value_text
from plait.workload import Query, Workload

if TYPE_CHECKING:  # loading these takes a moment, and not every call needs them
    import pandas
    import pyarrow as pa

    from plait.evaluator import Result, StoredData
    from plait.runtime.run import Run
    from plait.runtime.snapshot import RunProgress
    from plait.spark.execution import Frame as DataFrame
    from plait.spark.execution import Session as SparkSession

ROWS_SHOWN = 20
# The planner whose deployments can be run so far.
RUNNABLE_PLANNER = "independent"

# A file, a folder, or text that was read already.
Origin: TypeAlias = str | Path | Source


def open(  # noqa: A001 (reads `plait.open(…)`)
    path: Origin | Sequence[Origin], *, spark: SparkSession | None = None
) -> Session:
    """Open one or several SQL files; a folder stands for all `*.sql` files in it, in order of their names.

    What is run runs in the Spark that is given; without one, a Spark on this machine is started when needed.
    """
    origins = [path] if isinstance(path, str | Path | Source) else list(path)
    if not origins:
        raise UserError("no-files", "no files are given to open", hint="name SQL files, or folders of them")
    texts = [text for origin in origins for text in sql_files(origin)]
    names = [each.name if isinstance(each, Source) else str(each) for each in origins]
    return _session(language.load(texts), " and ".join(names), spark)


def open_text(
    text: str, name: str = "<sql>", base: Path | None = None, *, spark: SparkSession | None = None
) -> Session:
    """Open SQL text. Paths in it are relative to `base`, the current folder unless given."""
    return _session(language.load_text(text, name=name, base=base or Path.cwd()), name, spark)


def _session(workload: Workload, origin: str, spark: SparkSession | None) -> Session:
    catalog = workload.catalog
    if not (catalog.streams or catalog.tables or catalog.sites or workload.queries):
        raise UserError("no-statements", f"nothing is declared in {origin}", hint="see docs/language.md")
    return Session(workload, spark)


def sql_files(origin: Origin) -> list[Path | Source]:
    """What an argument of `open` stands for: the files of a folder, in order of their names, or itself."""
    if isinstance(origin, Source):
        return [origin]
    if not str(origin):
        raise UserError("source-file", "a file's name is empty", hint="`.` is the current folder")
    path = Path(origin)
    try:
        if not path.is_dir():
            return [path]
        files = sorted(path.glob("*.sql"))
    except OSError:
        return [path]  # reading it will say what is wrong with it
    if not files:
        raise UserError("no-files", f"the folder {path} holds no .sql files")
    return [*files]


class Session:
    """What some SQL files declare, bound and checked: every stream, table, site, link and query.

    Evaluating reads stored data into memory and keeps it for the next query, and running starts a Spark if
    none was given; `close`, or leaving a `with` block, lets go of both. A Spark that was given is left alone.
    """

    def __init__(self, workload: Workload, spark: SparkSession | None = None) -> None:
        self.workload = workload
        self._given_spark = spark
        self._started_spark: SparkSession | None = None

    def close(self) -> None:
        """Let go of the stored data and of a Spark that was started for this. Both come back when needed."""
        data = vars(self).pop("_data", None)
        if data is not None:
            data.close()
        if self._started_spark is not None:
            from plait.spark.session import stop

            stop(self._started_spark)
            self._started_spark = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries, in the order of their declaration."""
        return tuple(query.name for query in self.workload.queries.values())

    def query(self, name: str) -> Query:
        found = self.workload.queries.get(name.lower())
        if found is None:
            raise UserError("unknown-query", f"there is no query `{name}`", hint=closest(name, self.queries))
        return found

    def check(self, *, sample: bool = False) -> Check:
        """What was declared. That there is nothing wrong with it is known since it was opened.

        With `sample`, rates, sizes and numbers of distinct values are also estimated from stored data.
        """
        return Check(self.workload, self._sampled if sample else None)

    def plan(self, planner: str = DEFAULT_PLANNER, *, sample: bool = False) -> Plan:
        """Plan all queries together. Nothing is run. With `sample`, what is not declared is estimated."""
        return self.compare([planner], sample=sample)[0]

    def compare(self, planners: Sequence[str] = tuple(PLANNERS), *, sample: bool = False) -> Comparison:
        """Plan with several planners, all of them unless named, under the same statistics."""
        statistics = self._sampled if sample else None
        reports = driver.compare(self.workload, planners, statistics=statistics)
        return Comparison([Plan(report) for report in reports])

    def evaluate(self, query: str, *, as_of_watermark: bool = False) -> EvaluatedRows:
        """The rows that a query means over the stored data.

        Streams count as ended; with `as_of_watermark` only what their watermark has closed is given.
        """
        from plait.evaluator import evaluate

        return EvaluatedRows(evaluate(self.query(query), self._data, closed_only=as_of_watermark))

    def explain(self, query: str) -> str:
        """How a query runs: on Spark's own operators or, where they cannot, in DuckDB, and why."""
        from plait.deployment.lowering import fragments
        from plait.deployment.stage_text import fragment_text

        name = self.query(query).name
        deployment = self.plan(RUNNABLE_PLANNER).deployment
        for fragment in fragments(deployment, self.workload.catalog):
            if fragment.query == name:
                return fragment_text(fragment, self.workload.catalog)
        refused = next(each for each in deployment.refused if each.name == name)
        raise InfeasibleError("not-admitted", f"query `{name}` is not run", detail=refused.reason)

    def run(
        self,
        planner: str = RUNNABLE_PLANNER,
        *,
        state: str | Path = DEFAULT_STATE,
        results: str | Path = DEFAULT_RESULTS,
        available_now: bool = False,
        drain: bool = False,
        for_seconds: float | None = None,
        trigger_seconds: float = 1.0,
        streams: Mapping[str, DataFrame] | None = None,
        master: str | None = None,
        log: bool = False,
    ) -> Running:
        """Run all queries on Spark; returns when they run.

        It goes on until it is stopped or, with `for_seconds`, the time is over. With `available_now` all data
        that is there is processed; with `drain` the streams count as ended after that, which closes every
        window. What is in the folder `state` is gone on with. `streams` gives the rows of streams without
        connector, as streaming DataFrames. `master` and `log` are for a Spark that is started for this:
        where it runs, this machine unless given, and whether it shows its logs.
        """
        from plait.runtime.run import Extent, Run

        if planner != RUNNABLE_PLANNER:
            raise UnsupportedError(
                "planner-runs",
                f"what the planner `{planner}` plans cannot be run yet",
                hint=f"use `{RUNNABLE_PLANNER}`: every query by itself",
            )
        extent = Extent(trigger_seconds, available_now, drain, for_seconds)
        run = Run(
            self.workload,
            self.plan(planner).deployment,
            planner=planner,
            spark_version=self._spark_version,
            connect=lambda: self._connected_spark(master, log),
            state=Path(state),
            results=Path(results),
            extent=extent,
            frames=streams,
        )
        run.start()
        return Running(run, Path(state))

    @property
    def _spark_version(self) -> str:
        return version("pyspark") if self._given_spark is None else self._given_spark.version

    def _connected_spark(self, master: str | None, log: bool) -> SparkSession:
        from plait.spark.session import adopted, session

        if self._given_spark is not None:
            return adopted(self._given_spark)
        if self._started_spark is None:
            self._started_spark = session(master, log=log)
        return self._started_spark

    def results(self, query: str, *, state: str | Path = DEFAULT_STATE) -> ResultRows:
        """The rows of a query that a run with that state folder has published, also while it goes on."""
        return published(self.query(query).name, state)

    @cached_property
    def _sampled(self) -> Statistics:
        from plait.engines.sampling import sample

        return sample(self.workload.catalog)

    @cached_property
    def _data(self) -> StoredData:
        from plait.evaluator import StoredData

        return StoredData.from_catalog(self.workload.catalog)

    def __repr__(self) -> str:
        return f"Session({_counts(self.workload)})"


class Running:
    """A run that goes on in the background. Leaving a `with` block stops it at a batch boundary."""

    def __init__(self, run: Run, state: Path) -> None:
        self._run = run
        self._state = state

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; whether it has come. Raises what went wrong."""
        ended = self._run.wait(timeout)
        self._raise_error()
        return ended

    def stop(self) -> None:
        """End at the next batch boundary. A later run with the same state goes on from there."""
        self._run.stop()
        self._raise_error()

    def drain(self) -> None:
        """Process all that is there, close everything, and end."""
        self._run.drain()
        self._raise_error()

    def progress(self) -> RunProgress:
        """How far it has come, as plain values."""
        return self._run.snapshot()

    def results(self, query: str) -> ResultRows:
        """The rows that were published so far, and those that are kept in memory."""
        from plait.runtime.outlets import find

        outlet = find(self._state, query)
        kept = self._run.rows_in_memory(outlet.query)
        if kept is not None:
            return ResultRows(outlet.columns, outlet.types, kept)
        return published(query, self._state)

    @property
    def has_ended(self) -> bool:
        return self._run.has_ended

    @property
    def error(self) -> PlaitError | None:
        """What went wrong so far. Queries that did not fail go on all the same."""
        return self._run.error

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run.stop()
        if kind is None:
            self._raise_error()

    def _raise_error(self) -> None:
        if self._run.error is not None:
            raise self._run.error

    def __repr__(self) -> str:
        from plait.runtime.progress import line

        return line(self.progress())


def published(query: str, state: str | Path = DEFAULT_STATE, results: str | Path | None = None) -> ResultRows:
    """The rows of a query that a run with that state folder has published; of the SQL nothing is needed.

    `results` says where the folders of results are, if they were moved since.
    """
    from plait.runtime.outlets import find
    from plait.runtime.results import table

    outlet = find(Path(state), query, None if results is None else Path(results))
    return ResultRows(outlet.columns, outlet.types, table(outlet))


def _counts(workload: Workload) -> str:
    catalog = workload.catalog
    counts = (
        counted(len(catalog.streams), "stream"),
        counted(len(catalog.tables), "table"),
        counted(len(catalog.sites), "site"),
        counted(len(workload.queries), "query", "queries"),
    )
    return ", ".join(counts)


class Check:
    """What is declared, for reading and for machines."""

    def __init__(self, workload: Workload, sampled: Statistics | None = None) -> None:
        self.workload = workload
        self.sampled = sampled

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What to know about the sample."""
        return () if self.sampled is None else self.sampled.notices

    def to_text(self, width: int | None = None) -> str:
        queries = self.workload.queries
        parts = [f"all right: {_counts(self.workload)}"]
        if queries:
            rows = [
                [query.name, ", ".join(_sources(query)), ", ".join(f"{n} {t}" for n, t in _columns(query))]
                for query in queries.values()
            ]
            parts.append(table_text(["query", "of", "gives"], rows, width=width))
        if self.sampled is not None:
            rows = [
                [
                    each["relation"],
                    each["statistic"],
                    *map(_estimate_text, (each["declared"], each["sampled"])),
                ]
                for each in self._statistics()
            ]
            columns = ["stream or table", "statistic", "declared", "sampled"]
            parts.append(table_text(columns, rows, numeric={2, 3}, width=width))
        return "\n\n".join(parts)

    def _statistics(self) -> list[dict[str, Any]]:
        """What was sampled, beside what is declared."""
        if self.sampled is None:
            return []
        known = declared(self.workload.catalog).estimates
        found = []
        for key, estimate in self.sampled.estimates.items():
            said = known.get(key)
            relation, statistic = key
            found.append(
                {
                    "relation": relation,
                    "statistic": statistic,
                    "declared": None if said is None else said.value,
                    "sampled": estimate.value,
                }
            )
        return found

    def to_json(self) -> dict[str, Any]:
        catalog = self.workload.catalog
        return {
            "streams": [stream.name for stream in catalog.streams.values()],
            "tables": [table.name for table in catalog.tables.values()],
            "sites": [site.name for site in catalog.sites.values()],
            "queries": [
                {
                    "name": query.name,
                    "sources": _sources(query),
                    "site": query.site,
                    "columns": [{"name": name, "type": type_} for name, type_ in _columns(query)],
                }
                for query in self.workload.queries.values()
            ],
            "statistics": self._statistics(),
            "notices": [notice.to_json() for notice in self.notices],
            "errors": [],
        }

    def __repr__(self) -> str:
        return self.to_text()


def _sources(query: Query) -> list[str]:
    streams, tables = sources_of(query.plan)
    return sorted(streams) + sorted(tables)


def _columns(query: Query) -> list[tuple[str, str]]:
    return [(name, str(type_)) for name, type_ in zip(query.columns, query.plan.types, strict=True)]


def _estimate_text(value: float | None) -> str:
    return "" if value is None else number_text(value)


class Plan:
    """What runs where, for all queries together."""

    def __init__(self, report: PlanReport) -> None:
        self.report = report
        self.deployment = report.deployment

    @property
    def is_feasible(self) -> bool:
        """Whether the machines can carry at least one of the queries."""
        return self.report.status is not PlanningStatus.INFEASIBLE

    def to_text(self, *, full: bool = False, width: int | None = None) -> str:
        return report_text(self.deployment, self.report.planner, full=full, width=width)

    def to_json(self) -> dict[str, Any]:
        """The plan document (docs/plan_document.md)."""
        return self.report.to_json()

    def to_dot(self) -> str:
        return to_dot(diagram_of(self.deployment, self.report.planner))

    def to_svg(self) -> str:
        return to_svg(diagram_of(self.deployment, self.report.planner))

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_svg()


class Comparison(Sequence[Plan]):
    """Plans of the same queries by several planners, with their costs side by side."""

    COLUMNS = ("planner", "status", "admitted", "operators", "cores", "network", "state", "seconds")

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = tuple(plans)

    @overload
    def __getitem__(self, index: int) -> Plan: ...
    @overload
    def __getitem__(self, index: slice) -> Comparison: ...
    def __getitem__(self, index: int | slice) -> Plan | Comparison:
        return Comparison(self.plans[index]) if isinstance(index, slice) else self.plans[index]

    def __len__(self) -> int:
        return len(self.plans)

    def to_text(self, width: int | None = None) -> str:
        numeric = range(3, len(self.COLUMNS))
        return table_text(self.COLUMNS, self._cells(), numeric=numeric, width=width)

    def to_json(self) -> dict[str, Any]:
        return {"plans": [plan.to_json() for plan in self.plans]}

    def _cells(self) -> list[list[str]]:
        return [
            [
                plan.report.planner,
                plan.report.status.value,
                f"{len(plan.deployment.admitted):,} of {len(plan.deployment.queries):,}",
                f"{len(plan.deployment.operators):,}",
                number_text(plan.deployment.cost.cores),
                bytes_per_s_text(plan.deployment.cost.network_bytes_per_s),
                f"{number_text(plan.deployment.cost.state_rows)} rows",
                f"{plan.report.seconds:.2f}",
            ]
            for plan in self.plans
        ]

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return _html_table(self.COLUMNS, self._cells())


class Rows:
    """Rows of a query with their columns."""

    def __init__(
        self, columns: Sequence[str], types: Sequence[Type], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        self.columns = tuple(columns)
        self.types = tuple(types)
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def to_text(self, limit: int | None = ROWS_SHOWN, width: int | None = None) -> str:
        """A table of the first rows and, if there are more, how many."""
        shown = self.rows if limit is None else self.rows[:limit]
        numeric = {position for position, type_ in enumerate(self.types) if type_.is_numeric}
        cells = [[value_text(value) for value in row] for row in shown]
        lines = [table_text(self.columns, cells, numeric=numeric, width=width)]
        if len(shown) < len(self.rows):
            lines.append(f"… {counted(len(self.rows) - len(shown), 'more row')}")
        return "\n".join(lines)

    def to_csv(self, limit: int | None = None) -> str:
        """As `format = 'csv'` reads it: NULL is an empty field, an empty string is quoted."""
        return csv_text([self.columns, *self.rows[:limit]])

    def to_json(self, limit: int | None = None) -> dict[str, Any]:
        """Columns with their types, and the rows as lists. What JSON has no numbers for is text: decimals,
        times (`2026-01-31T12:00:00`, UTC), NaN and infinities."""
        return {
            "columns": [
                {"name": name, "type": str(type_)}
                for name, type_ in zip(self.columns, self.types, strict=True)
            ],
            "row_count": len(self.rows),
            "rows": [[json_value(value) for value in row] for row in self.rows[:limit]],
        }

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        shown = [[value_text(value) for value in row] for row in self.rows[:ROWS_SHOWN]]
        more = len(self.rows) - len(shown)
        foot = f"<p>… {counted(more, 'more row')}</p>" if more else ""
        return _html_table(self.columns, shown) + foot


class EvaluatedRows(Rows):
    """What a query means over stored data, sorted by all columns."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.columns, result.types, result.rows)
        self.bad_records = dict(result.bad_records)

    def to_json(self, limit: int | None = None) -> dict[str, Any]:
        return {**super().to_json(limit), "bad_records": self.bad_records}


class ResultRows(Rows):
    """What a run has published so far, in the order in which it did."""

    def __init__(self, columns: Sequence[str], types: Sequence[Type], table: pa.Table) -> None:
        from plait.runtime.arrow_rows import ArrowRows

        super().__init__(columns, types, ArrowRows(table))
        self._table = table

    def to_arrow(self) -> pa.Table:
        return self._table

    def to_pandas(self) -> pandas.DataFrame:
        return self._table.to_pandas()


def _html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
