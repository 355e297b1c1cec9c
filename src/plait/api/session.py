"""Opens SQL files, and does with what they declare whatever can be done with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from plait import language
from plait.api.check import Check, counts_text, query_cells
from plait.api.difference import Difference, against
from plait.api.html import html_line, html_table
from plait.api.plans import Comparison, Explanation, Plan
from plait.api.rows import EvaluatedRows, ResultRows
from plait.api.running import Running, published
from plait.api.upkeep import keeping
from plait.cost.model import CostModel
from plait.deployment.lowering import Engines, check_engines, fragments
from plait.errors import InfeasibleError, Source, UserError, closest
from plait.planners import DEFAULT_PLANNER, PLANNERS, driver
from plait.runtime import DEFAULT_RESULTS, DEFAULT_STATE, MOST_ROWS
from plait.statistics import Statistics
from plait.workload import Query, Workload

if TYPE_CHECKING:  # loading these takes a moment, and not every call needs them
    from plait.evaluator import StoredData
    from plait.spark.execution import Frame as DataFrame
    from plait.spark.execution import Session as SparkSession

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
        self._planned: dict[tuple[str, bool], Plan] = {}

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
        if (planner, sample) not in self._planned:
            self._planned[planner, sample] = self.compare([planner], sample=sample)[0]
        return self._planned[planner, sample]

    def compare(self, planners: Sequence[str] | None = None, *, sample: bool = False) -> Comparison:
        """Plan with several planners, all that can unless named, under the same statistics."""
        statistics = self._sampled if sample else None
        reports = driver.compare(self.workload, planners, statistics=statistics)
        return Comparison([Plan(report) for report in reports])

    def against(self, state: str | Path = DEFAULT_STATE) -> Difference:
        """What it would take to let the system with that state folder, running or stopped, compute what is
        declared here. Nothing is run or changed."""
        return against(state, self.workload.texts)

    def evaluate(self, query: str, *, as_of_watermark: bool = False) -> EvaluatedRows:
        """The rows that a query means over the stored data.

        Streams count as ended; with `as_of_watermark` only what their watermark has closed is given.
        """
        from plait.evaluator import evaluate

        return EvaluatedRows(evaluate(self.query(query), self._data, closed_only=as_of_watermark))

    def explain(
        self,
        *queries: str,
        planner: str = DEFAULT_PLANNER,
        engines: str = Engines.ANY,
        results: str | Path = DEFAULT_RESULTS,
    ) -> Explanation:
        """How queries run, all unless some are named: together in DuckDB, or each by itself, on Spark's own
        operators wherever they can; and where their rows go. In a notebook with a picture of their part of
        the plan."""
        from plait.deployment.joins_apart import reasons_apart
        from plait.deployment.stage_text import fragment_text
        from plait.runtime.outlets import outlets_of

        deployment = self.plan(planner).deployment
        allowed = _engines(engines)
        running = fragments(
            deployment, self.workload.catalog, together=PLANNERS[planner].shares, engines=allowed
        )
        computed_by = {result.query: fragment for fragment in running for result in fragment.results}
        names = [self.query(query).name for query in queries] or self.queries
        check_engines([computed_by[name] for name in names if name in computed_by], self.workload, allowed)
        outlets = outlets_of(self.workload, running, Path(results))
        cost = CostModel(self.workload.catalog, unit_costs=deployment.unit_costs)
        apart = reasons_apart(running, self.workload.catalog, cost)
        parts = []
        for name in names:
            if name not in computed_by:
                refused = next(each for each in deployment.refused if each.name == name)
                raise InfeasibleError("not-admitted", f"query `{name}` is not run", detail=refused.reason)
            lines = [fragment_text(computed_by[name], name, self.workload.catalog)]
            lines += [f"  {apart[name]}"] if name in apart else []
            parts.append("\n".join([*lines, f"  {outlets[name.lower()].words(self.query(name).sink)}"]))
        return Explanation("\n\n".join(parts), self.plan(planner), names)

    def run(
        self,
        planner: str = DEFAULT_PLANNER,
        *,
        engines: str = Engines.ANY,
        state: str | Path = DEFAULT_STATE,
        results: str | Path = DEFAULT_RESULTS,
        available_now: bool = False,
        drain: bool = False,
        for_seconds: float | None = None,
        trigger_seconds: float = 1.0,
        most_rows: int = MOST_ROWS,
        retain: str | None = None,
        compact: str | None = None,
        merge: bool = True,
        streams: Mapping[str, DataFrame] | None = None,
        master: str | None = None,
        log: bool = False,
    ) -> Running:
        """Run all queries on Spark; returns when they run.

        It goes on until it is stopped or, with `for_seconds`, the time is over. With `available_now` all data
        that is there is processed; with `drain` the streams count as ended after that, which closes every
        window. With the engines `spark` nothing is computed outside Spark, with `duckdb` everything in
        DuckDB. What is in the folder `state` is gone on with. A query that gives more than `most_rows` at
        once, such as a join that explodes, is stopped. `retain` (`7 days`, `10 GB`) and `compact`
        (`10 minutes`) are for queries whose results are files and that do not say it themselves: what is
        older, or too much, is removed; small files that are as old are merged. With `merge`, queries that
        came one by one are arranged as if they had come together. `streams` gives the rows of streams without
        connector, as streaming DataFrames. `master` and `log` are for a Spark that is started
        for this, if this process has none: where it runs, this machine unless given, and whether it shows its
        logs.
        """
        from plait.runtime.run import Extent, Run

        if planner not in PLANNERS:
            raise UserError(
                "unknown-planner", f"there is no planner `{planner}`", hint=closest(planner, PLANNERS)
            )
        if most_rows < 1:
            raise UserError("most-rows", f"most_rows is {most_rows}: no query could give a row")
        extent = Extent(trigger_seconds, available_now, drain, for_seconds)
        run = Run(
            self.workload,
            self.plan(planner).deployment,
            planner=planner,
            together=PLANNERS[planner].shares,
            engines=_engines(engines),
            spark_version=self._spark_version,
            connect=lambda: self._connected_spark(master, log),
            state=Path(state),
            results=Path(results),
            extent=extent,
            most_rows=most_rows,
            frames=streams,
            keeping=keeping(retain, compact),
            merges=merge,
        )
        run.start()
        return Running(run, Path(state))

    @property
    def _spark_version(self) -> str:
        return version("pyspark") if self._given_spark is None else self._given_spark.version

    def _connected_spark(self, master: str | None, log: bool) -> SparkSession:
        from plait.spark.session import adopted, present, session

        if self._started_spark is None:
            there = self._given_spark or present()
            if there is not None and master is not None:
                raise UserError(
                    "master-given",
                    f"the master `{master}` cannot be used: this process has a Spark already",
                    hint="leave the master out to use that one, or stop it first",
                )
            if there is not None:
                return adopted(there)
            self._started_spark = session(master, log=log)
        return self._started_spark

    def results(
        self, query: str, *, state: str | Path = DEFAULT_STATE, results: str | Path | None = None
    ) -> ResultRows:
        """The rows of a query that a run with that state folder has published, also while it goes on.

        `results` says where the folders of results are, if they were moved since.
        """
        return published(self.query(query).name, state, results)

    @cached_property
    def _sampled(self) -> Statistics:
        from plait.engines.sampling import sample

        return sample(self.workload.catalog)

    @cached_property
    def _data(self) -> StoredData:
        from plait.evaluator import StoredData

        return StoredData.from_catalog(self.workload.catalog)

    def __repr__(self) -> str:
        return f"Session({counts_text(self.workload)})"

    def _repr_html_(self) -> str:
        cells = query_cells(self.workload.queries.values())
        return html_line(counts_text(self.workload)) + html_table(["query", "of", "gives"], cells)


def _engines(name: str) -> Engines:
    if name not in [*Engines]:
        raise UserError(
            "unknown-engines",
            f"there are no engines `{name}`",
            hint="any; or spark or duckdb, which then computes everything",
        )
    return Engines(name)
