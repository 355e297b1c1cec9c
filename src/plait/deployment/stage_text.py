"""How a fragment runs, in words: the stages that are applied, numbered, and when results come."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import assert_never

from plait.catalog import Catalog
from plait.deployment.describe import description, expression_text, failing_text, names_of, window_text
from plait.deployment.fragments import Fragment, Way
from plait.deployment.row_by_row import row_by_row
from plait.deployment.stages import (
    AggregateStage,
    Distinct,
    EpilogueStage,
    FinishStage,
    IntervalJoinStage,
    KeepStage,
    LookupStage,
    ReadStage,
    SelectStage,
    Stage,
    Stages,
    TickJoinStage,
    TicksStage,
    TopStage,
    UniteStage,
)
from plait.expressions.nodes import TRUE
from plait.plan.format import duration_text
from plait.plan.nodes import (
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    Static,
    StreamScan,
    TableScan,
    Ticking,
    Window,
    scans_of,
    sources_of,
    walk_plan,
)
from plait.quantity_text import counted
from plait.sharing.chains import comes_at_once
from plait.sharing.failing import checks
from plait.sharing.families import Families, families
from plait.sharing.tagged import TaggedPlans

NAMES_SHOWN = 5


def fragment_text(fragment: Fragment, query: str, catalog: Catalog) -> str:
    """Which way a query of the fragment runs and why, what is done, and when a result comes."""
    match fragment.way:
        case Way.NATIVE:
            assert fragment.stages is not None, fragment.name
            lines = _native_lines(fragment.only.query, fragment.stages, catalog)
        case Way.SHARED | Way.WOVEN:
            lines = _shared_lines(fragment, query, catalog)
        case _:
            assert_never(fragment.way)
    return "\n".join([*lines, *_failing_lines(fragment, query)])


def _failing_lines(fragment: Fragment, query: str) -> Iterator[str]:
    """What may have no value on some rows, and is counted."""
    plan = next(result.plan for result in fragment.results if result.query == query)
    texts = dict.fromkeys(map(failing_text, checks(plan)))
    if texts:
        yield f"  rows on which there is no such value are counted: {', '.join(texts)}"


# On Spark's operators


def _native_lines(query: str, stages: Stages, catalog: Catalog) -> Iterator[str]:
    yield f"{query} runs on Spark's own operators"
    yield ""
    width = len(str(len(stages.streaming) + len(stages.epilogue)))
    for number, stage in enumerate(stages.streaming):
        yield f"  {number + 1:>{width}}. {_stage_text(stage, catalog)}"
    if stages.epilogue:
        yield ""
        yield "  on each micro-batch of these rows"
    for number, last in enumerate(stages.epilogue, start=len(stages.streaming)):
        yield f"  {number + 1:>{width}}. {_epilogue_text(last)}"
    yield ""
    yield f"  {_timing_text(stages)}"


def _stage_text(stage: Stage, catalog: Catalog) -> str:
    numbers = [str(number + 1) for number in stage.inputs]
    match stage:
        case ReadStage(scan):
            return _read_text(scan, catalog)
        case SelectStage(Filter() as node):
            return f"rows of {numbers[0]} where {description(node)}"
        case SelectStage(node):
            return f"columns of {numbers[0]}: {description(node)}"
        case UniteStage():
            return f"all rows of {_listed(numbers)}"
        case KeepStage(node):
            return f"keep rows of {numbers[0]} for {window_text(node.window)[1:-1]}"
        case TicksStage(node, window):
            ticks = -(-window.range_us // window.slide_us)
            each = "once" if ticks == 1 else f"up to {ticks} times"
            return f"put rows of {numbers[0]} into windows {description(node)}, each {each}"
        case AggregateStage(node, distinct):
            how = "" if distinct is Distinct.NONE else f"; different values by {distinct.value}"
            return f"at each tick, of {numbers[0]}: {description(node)}{how}"
        case IntervalJoinStage(node):
            return f"join rows of {_listed(numbers)} that meet in time: {description(node)}"
        case TickJoinStage(node):
            return f"at each tick, join {_listed(numbers)}: {description(node)}"
        case _:
            assert_never(stage)


def _epilogue_text(stage: EpilogueStage) -> str:
    match stage:
        case FinishStage(Filter() as node):
            return f"rows where {description(node)}"
        case FinishStage(node):
            return f"columns: {description(node)}"
        case TopStage(node):
            return f"at each tick, {description(node)}"
        case LookupStage(node):
            _, tables = sources_of(next(each for each in node.inputs if isinstance(each.timing, Static)))
            return f"look up {_listed(sorted(tables))} as of the batch: {description(node)}"
        case _:
            assert_never(stage)


def _timing_text(stages: Stages) -> str:
    output = stages.streaming[-1].output
    held_back = duration_text(stages.hold_ms * 1000)
    if isinstance(output.timing, Ticking):
        if not stages.hold_ms:
            return "the rows of a tick come once the watermark has reached it"
        return (
            f"the rows of a tick come once the watermark is {held_back} past it, for the joins of rows below"
        )
    if _is_outer(output):
        return f"matches come at once, rows without partner once the watermark is {held_back} past them"
    return "results come at once, with the last of the rows that they are made of"


def _is_outer(node: Node) -> bool:
    while isinstance(node, Filter | Project | Window):
        node = node.input
    return isinstance(node, OuterJoin) or (isinstance(node, Join) and any(map(_is_outer, node.inputs)))


# In the database, or together with others


def _shared_lines(fragment: Fragment, query: str, catalog: Catalog) -> Iterator[str]:
    others = len(fragment.results) - 1
    beside = f" with {counted(others, 'other query', 'other queries')}" if others else ""
    where = "in DuckDB" if fragment.way is Way.SHARED else "on Spark's own operators"
    yield f"{query} is computed {where}{beside}, from streams that are read once"
    if fragment.reasons:
        yield ""
        yield from (f"  {reason}" for reason in fragment.reasons)
    yield ""
    plan = next(result.plan for result in fragment.results if result.query == query)
    numbers: dict[Node, int] = {}
    width = len(str(sum(1 for _ in walk_plan(plan))))
    scans = scans_of(plan)
    for number, name in enumerate(sorted({scan.stream for scan in scans}), start=1):
        read = next(each.plan for each in fragment.inputs if each.stream == name)
        numbers |= {node: number for node in (read, *scans) if name in sources_of(node)[0]}
        yield f"  {number:>{width}}. {_input_text(read, catalog)}"
    rest = list(_operators(plan, numbers, width))
    if rest:
        yield ""
        yield f"  {where}, once a micro-batch"
        yield from rest
    yield ""
    yield f"  {_sharing_text(fragment, query)}"


def _sharing_text(fragment: Fragment, query: str) -> str:
    """What of the query is computed once for others too, if anything is, and when a result comes."""
    found = _families(fragment)
    for kind, what, when in (
        (found.selects, "one pass over the rows", "results come at once"),
        (found.joins, "one join", "results come at once, with the last of the rows that they are made of"),
        (
            found.aggregates,
            "one tree of partial aggregates",
            "the rows of a tick come once the watermark has reached it",
        ),
    ):
        for family in kind:
            names = [member.query for member in family]
            if query in names:
                others = [name for name in names if name != query]
                return f"{what} serves {_few([query, *others])}; {when}" if others else when
    plan = next(result.plan for result in fragment.results if result.query == query)
    when = (
        "results come at once"
        if comes_at_once(plan)
        else "a result comes once the watermark has made it final"
    )
    others = [name for name in _computed_as_one(fragment, plan) if name != query]
    return f"one plan serves {_few([query, *others])}, which differ in constants; {when}" if others else when


def _computed_as_one(fragment: Fragment, plan: Node) -> list[str]:
    """The queries of all plans that are computed with this one."""
    for whose in _tagged(fragment).results.values():
        if isinstance(whose, dict) and plan in whose.values():
            together = {*whose.values()}
            return [result.query for result in fragment.results if result.plan in together]
    return []


@lru_cache(maxsize=8)
def _tagged(fragment: Fragment) -> TaggedPlans:
    others = {*_families(fragment).others}
    return TaggedPlans(result.plan for result in fragment.results if result.query in others)


@lru_cache(maxsize=8)  # all queries of a fragment may be asked for
def _families(fragment: Fragment) -> Families:
    scans = {each.stream.lower(): row_by_row(each.plan).scan for each in fragment.inputs}
    plans = ((result.query, result.plan) for result in fragment.results)
    return families(plans, scans, parts={result.query: result.part for result in fragment.results})


def _few(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _operators(plan: Node, numbers: dict[Node, int], width: int) -> Iterator[str]:
    """The nodes above the inputs, inputs first."""
    if plan in numbers:
        return
    for source in plan.inputs:
        yield from _operators(source, numbers, width)
    numbers[plan] = max(numbers.values(), default=0) + 1
    of = f" of {_listed([str(numbers[source]) for source in plan.inputs])}" if plan.inputs else ""
    name = f" {plan.table}" if isinstance(plan, TableScan) else ""
    yield f"  {numbers[plan]:>{width}}. {plan.kind}{name}{of}: {description(plan)}"


def _input_text(plan: Node, catalog: Catalog) -> str:
    simple = row_by_row(plan)
    names = [name.text for name in names_of(simple.scan)]
    text = _read_text(simple.scan, catalog)
    if simple.predicate != TRUE:
        text += f"; rows where {expression_text(simple.predicate, names)}"
    return text


def _read_text(scan: StreamScan, catalog: Catalog) -> str:
    delay_us = catalog.stream(scan.stream).delay_us
    behind = f"watermark {duration_text(delay_us)} behind" if delay_us else "watermark at the latest row"
    return f"read {scan.stream}: {description(scan)}; {behind}"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
