"""From a deployment to what runs: fragments of one query or of many, and which way computes them.

Spark's own operators are used wherever they give exactly the rows of the definition. The reasons why they do
not, all of them found by comparing rows or in what Spark refuses:

| in the plan | why Spark cannot |
|---|---|
| a row window | rows are numbered once the watermark has passed them: no operator does that |
| a window that holds a row at very many ticks | Spark would write the row, and keep it, once for each tick |
| windows finer than a millisecond | Spark's watermarks are whole milliseconds |
| rows of a window as they are, at every tick | only groups of rows wait until a tick is closed |
| a table below something that keeps rows | it has to be seen as of the batch that gives the result |
| a join of rows without an equality | Spark refuses it |
| `ORDER BY … LIMIT` below something else | Spark has no such streaming operator |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from enum import StrEnum
from typing import assert_never

from plait.catalog import Catalog
from plait.cost.model import CostModel
from plait.cost.units import DUCKDB, SPARK
from plait.deployment.deployment import Deployment, SharedJoin, Tree
from plait.deployment.fragments import Family, Fragment, Input, Result, Way
from plait.deployment.native_lowering import NotNativeError, is_native, native_stages
from plait.deployment.row_by_row import RowByRow, row_by_row
from plait.deployment.weaving import can_weave_join, can_weave_window, connected, plan_of, whole_scans
from plait.errors import InternalError, UnsupportedError, reported
from plait.expressions.failing import can_any_fail, not_false
from plait.expressions.keeping import kept, kept_for
from plait.expressions.nodes import TRUE, Literal, conjuncts, substitute_columns
from plait.expressions.types import BOOLEAN, TIMESTAMP
from plait.plan.nodes import Field, Filter, Join, Node, StreamScan, sources_of
from plait.sharing.chains import chain_above, inputs_of
from plait.sharing.families import NO_PARTS, families
from plait.sharing.parts import parted
from plait.sharing.patterns import Selection, selection_of, wanted_by_any
from plait.workload import Workload


class Engines(StrEnum):
    """Where queries may be computed."""

    ANY = "any"
    SPARK = "spark"
    DUCKDB = "duckdb"


def fragments(
    deployment: Deployment, catalog: Catalog, *, together: bool = False, engines: Engines = Engines.ANY
) -> tuple[Fragment, ...]:
    """What runs for the admitted queries: each by itself, or `together` what they have in common, on the
    engine that the deployment says, in the database alone, or on Spark alone; `check_engines` says which of
    them that cannot do. The deployment is planned from declarations."""
    return arranged(
        results_of(deployment, catalog),
        for_spark(deployment),
        catalog,
        CostModel(catalog, unit_costs=deployment.unit_costs),
        together=together,
        engines=engines,
    )


def arranged(
    results: Sequence[Result],
    for_spark: Set[str],
    catalog: Catalog,
    cost: CostModel,
    *,
    together: bool = False,
    engines: Engines = Engines.ANY,
) -> tuple[Fragment, ...]:
    """The same of results, some of which Spark shall compute if any engine may. They are in parts that are
    worth it in the database; what that is on Spark follows from `cost`."""
    if not together and engines is Engines.DUCKDB:
        return tuple(shared_fragment(result.query, [result], catalog) for result in results)
    if not together:
        return tuple(fragment(result, catalog) for result in results)
    match engines:
        case Engines.ANY:
            names = {*for_spark}
        case Engines.SPARK:
            names = {result.query for result in results}
            results = in_parts(results, catalog, cost, engine=SPARK)
        case Engines.DUCKDB:
            names = set()
        case _:
            assert_never(engines)
    woven = woven_fragments([each for each in results if each.query in names], catalog)
    rest = {each.query: each for each in results if each.query not in names}
    groups = connected({name: each.plan for name, each in rest.items()})
    return (
        *woven,
        # No query has a name with a dash.
        *(
            shared_fragment(f"shared-{number}", [rest[name] for name in group], catalog)
            for number, group in enumerate(groups)
        ),
    )


def check_engines(fragments: Iterable[Fragment], workload: Workload, engines: Engines) -> None:
    """Refuse, all at once, the queries that need another engine than those that are allowed."""
    refused = [
        UnsupportedError(
            "not-native",
            f"the query `{each.only.query}` cannot run on Spark's operators alone",
            detail="\n".join(each.reasons),
            hint="let DuckDB compute what Spark cannot: that is the default",
            span=workload.query(each.only.query).span,
        )
        for each in fragments
        if engines is Engines.SPARK and each.way is Way.SHARED
    ]
    if refused:
        raise reported(refused)


def results_of(deployment: Deployment, catalog: Catalog) -> list[Result]:
    """What the admitted queries are to give, in an order that does not depend on that of their declarations:
    a state goes by it."""
    results = []
    parted: list[Tree | SharedJoin] = [*deployment.trees, *deployment.joins]
    parts = {query: each.part for each in parted for query in each.queries}
    for query in sorted(deployment.admitted, key=lambda query: query.name.lower()):
        plan = plan_of(deployment, query)
        _check_sources(plan, catalog)
        if len(query.columns) != len(plan.types):
            raise InternalError(
                "columns",
                f"the query `{query.name}` has {len(query.columns)} columns, but its plan {len(plan.types)}",
            )
        results.append(Result(query.name, query.columns, plan, part=parts.get(query.name, "")))
    return results


def in_parts(
    results: Sequence[Result],
    catalog: Catalog,
    cost: CostModel,
    *,
    engine: str = DUCKDB,
    given: Mapping[str, str] = NO_PARTS,
) -> list[Result]:
    """Results, of which those of one part share a join on an engine; the parts of some are given."""
    joining = [result for result in results if isinstance(chain_above(result.plan).base, Join)]
    # Where nobody comes to, nothing changes.
    changing = {sources_of(result.plan) for result in joining if result.query not in given}
    joining = [result for result in joining if sources_of(result.plan) in changing]
    scans = whole_scans(_plans(joining), catalog)
    plans = ((result.query, result.plan) for result in joining)
    parts = {
        member.query: name
        for alike in families(plans, scans, tagged=engine == DUCKDB).joins
        if any(member.query not in given for member in alike)
        for name, part in parted(alike, cost, engine, given).items()
        for member in part
    }
    parts = {**given, **parts}
    return [replace(result, part=parts.get(result.query, result.part)) for result in results]


def for_spark(deployment: Deployment) -> set[str]:
    """The queries whose trees and joins Spark computes, as the deployment says."""
    return {query for each in deployment.shared if each.engine == SPARK for query in each.queries}


def fragment(result: Result, catalog: Catalog) -> Fragment:
    """How a query runs by itself: natively if Spark can, otherwise in the database."""
    try:
        stages = native_stages(result.plan)
    except NotNativeError as obstacle:
        return shared_fragment(result.query, [result], catalog, obstacle.reasons)
    inputs = tuple(Input(scan.stream, scan) for scan in whole_scans([result.plan], catalog).values())
    return Fragment(result.query, (result,), inputs, Way.NATIVE, stages=stages)


def shared_fragment(
    name: str,
    results: Sequence[Result],
    catalog: Catalog,
    reasons: tuple[str, ...] = (),
    streams: Iterable[str] = (),
) -> Fragment:
    """Queries that run together in the database, or one by itself; then `reasons` say why not in Spark.
    `streams` are read whether a query wants rows of them or not."""
    read: dict[str, list[RowByRow]] = {}
    for simple in (simple for result in results for simple in _read(result.plan)):
        read.setdefault(simple.scan.stream, []).append(simple)
    inputs = {
        scan.stream: _wanted_rows(scan, read[scan.stream])
        for scan in whole_scans(_plans(results), catalog).values()
    }
    for stream in (catalog.stream(name) for name in streams):
        unread = StreamScan(stream.name, (Field(stream.event_time, TIMESTAMP),))
        inputs.setdefault(stream.name, Filter(unread, Literal(False, BOOLEAN)))
    in_order = tuple(Input(stream, plan) for stream, plan in sorted(inputs.items()))
    return Fragment(name, tuple(results), in_order, Way.SHARED, reasons)


@kept
def _read(plan: Node) -> tuple[RowByRow, ...]:
    """How a plan reads its streams."""
    return tuple(map(row_by_row, inputs_of(plan)))


def _wanted_rows(scan: StreamScan, read: Iterable[RowByRow]) -> Node:
    """The rows of a stream that any query wants, which read it like this."""
    predicate = wanted_by_any(_selection(simple, scan) for simple in read)
    return scan if predicate == TRUE else Filter(scan, predicate)


@kept_for
def _selection(simple: RowByRow, scan: StreamScan) -> Selection:
    """The rows that are read like this, of a scan with more columns."""
    places = {field.name: index for index, field in enumerate(scan.columns)}
    positions = [places[field.name] for field in simple.scan.columns]
    over_scan = substitute_columns(simple.predicate, positions.__getitem__)
    # Rows on which a term fails are wanted, too: they are counted.
    terms = [not_false(term) if can_any_fail(term) else term for term in conjuncts(over_scan)]
    return selection_of(terms, len(scan.columns))


def woven_fragments(results: Sequence[Result], catalog: Catalog) -> Iterator[Fragment]:
    """A fragment for each family of queries, and one for each query that has none. A window aggregate that
    Spark cannot compute by itself may still be a tree of one."""
    by_name = {result.query: result for result in results}
    scans = whole_scans(_plans(results), catalog, with_times=True)
    plans = ((result.query, result.plan) for result in results)
    parts = {result.query: result.part for result in results}
    found = families(plans, scans, tagged=False, parts=parts)
    woven: list[Family] = [tuple(each) for each in found.selects]
    woven += [tuple(filter(can_weave_window, family)) for family in found.aggregates]
    woven += [tuple(each) for each in found.joins if can_weave_join(each[0], by_name[each[0].query].plan)]
    woven = [each for each in woven if len(each) > 1 or (each and not is_native(by_name[each[0].query].plan))]
    together = {member.query for family in woven for member in family}
    for number, family in enumerate(woven):
        members = tuple(by_name[member.query] for member in family)
        streams = {name for member in members for name in sources_of(member.plan)[0]}
        inputs = tuple(Input(name, scans[name.lower()]) for name in sorted(streams))
        yield Fragment(f"woven-{number}", members, inputs, Way.WOVEN, family=family)
    for result in results:
        if result.query not in together:
            yield fragment(result, catalog)


def woven_again(name: str, results: Sequence[Result], inputs: tuple[Input, ...]) -> Fragment:
    """A fragment of one family, as it was made before over these inputs."""
    scans = {each.stream.lower(): row_by_row(each.plan).scan for each in inputs}
    found = families(((result.query, result.plan) for result in results), scans, tagged=False)
    woven: list[Family] = [tuple(each) for each in found.selects]
    woven += [tuple(each) for each in found.aggregates]
    woven += [tuple(each) for each in found.joins]
    (family,) = woven
    return Fragment(name, tuple(results), inputs, Way.WOVEN, family=family)


def _plans(results: Iterable[Result]) -> Iterator[Node]:
    return (result.plan for result in results)


def _check_sources(plan: Node, catalog: Catalog) -> None:
    for stream in sorted(sources_of(plan)[0]):
        if stream.lower() not in catalog.streams:
            raise InternalError("unknown-stream", f"a plan reads `{stream}`, which is not declared")
