"""Turns a canonical plan into Spark's streaming stages, or says why that is not possible.

From the root downwards, what needs no state and is above everything that does (lookups in tables, the first
rows of a tick) becomes the epilogue. Everything below is lowered node by node, inputs first; a sub-plan that
is used twice becomes one stage. A join of several inputs becomes a chain of `binary_joins`, in an order in
which each step has an equality; the equalities that follow from others are used for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from plait.deployment.binary_joins import equalities, in_order, predicate_of_step
from plait.deployment.stages import (
    AggregateStage,
    Distinct,
    EpilogueStage,
    FinishStage,
    IntervalJoinStage,
    KeepStage,
    LookupStage,
    Probe,
    ReadStage,
    SelectStage,
    Stage,
    Stages,
    TickJoinStage,
    TicksStage,
    TopStage,
    UniteStage,
)
from plait.expressions.nodes import (
    Expression,
    WindowEdge,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
    walk,
)
from plait.plan.format import duration_text
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    RangeWindow,
    RowTicking,
    RowWindow,
    Static,
    StreamScan,
    TableScan,
    Ticking,
    TickWindow,
    Top,
    Union,
    Window,
    Windowed,
    sources_of,
    walk_plan,
)
from plait.space import restricted

# A window that holds each row at more ticks than this is left to the database, which keeps a row once.
MAX_TICKS_A_ROW = 16

_US_PER_MS = 1000


class NotNativeError(Exception):
    """Spark's operators cannot compute a plan: why, in words for the user."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


def is_native(plan: Node) -> bool:
    try:
        native_stages(plan)
    except NotNativeError:
        return False
    return True


def native_stages(plan: Node) -> Stages:
    """The stages of a plan, or a `NotNativeError`."""
    reasons = tuple(dict.fromkeys(_window_obstacles(plan)))
    if reasons:
        raise NotNativeError(*reasons)
    above, base = _epilogue_nodes(plan)
    lowering = _Lowering()
    part = lowering.lower(base)
    if isinstance(part.output.timing, Ticking) and part.given is None:
        raise NotNativeError(
            "its rows are those of a window at each tick, and only groups of rows wait in Spark until a tick "
            "is closed"
        )
    epilogue = _epilogue(above, part)
    probes = tuple(dict.fromkeys(lowering.probes))
    return Stages(tuple(lowering.stages), epilogue, probes, part.hold_ms)


def is_in_milliseconds(window: TickWindow) -> bool:
    """Whether windows begin and end at whole milliseconds, as Spark counts its watermarks."""
    return not any(us % _US_PER_MS for us in (window.range_us, window.slide_us, window.offset_us))


def _window_obstacles(plan: Node) -> Iterator[str]:
    for node in walk_plan(plan):
        match node:
            case Window(_, RowWindow()):
                yield "it has a window of rows, and Spark has no operator that numbers rows by event time"
            case Window(_, TickWindow(range_us, slide_us) as window):
                ticks = -(-range_us // slide_us)
                if ticks > MAX_TICKS_A_ROW:
                    yield (
                        f"a window of {duration_text(range_us)} every {duration_text(slide_us)} holds each "
                        f"row at {ticks:,} ticks, and Spark would keep the row {ticks:,} times"
                    )
                if not is_in_milliseconds(window):
                    yield "it has a window finer than a millisecond, and Spark's watermarks are not"
            case _:
                pass


# The epilogue


def _epilogue_nodes(plan: Node) -> tuple[list[Node], Node]:
    """The nodes of the epilogue, from the root downwards, and the node that they begin with."""
    path: list[Node] = []
    node = plan
    while True:
        below = _below(node)
        if below is None:
            break
        path.append(node)
        node = below
    # Filters and projections that nothing of the epilogue is below of are better done by the streaming part.
    while path and isinstance(path[-1], Filter | Project):
        node = path.pop()
    return path, node


def _below(node: Node) -> Node | None:
    """What the node reads, if it can work on a batch of its rows by itself."""
    match node:
        case Filter(source) | Project(source):
            return source
        case Top(source):
            return None if isinstance(node.timing, RowTicking) else source
        case Join() if _moving(node) != tuple(range(len(node.inputs))):
            moving = _moving(node)
            return node.inputs[moving[0]] if len(moving) == 1 else restricted(node, moving)
        case OuterJoin(OuterKind.LEFT, left, right) if isinstance(right.timing, Static):
            return left
        case OuterJoin(OuterKind.RIGHT, left, right) if isinstance(left.timing, Static):
            return right
        case _:
            return None


def _moving(join: Join) -> tuple[int, ...]:
    return tuple(k for k, source in enumerate(join.inputs) if not isinstance(source.timing, Static))


def _epilogue(above: Sequence[Node], part: _Part) -> tuple[EpilogueStage, ...]:
    stages: list[EpilogueStage] = []
    output = part.output
    for node in reversed(above):
        match node:
            case Filter() | Project():
                stages.append(FinishStage(replace(node, input=output)))
            case Top():
                if part.given is None or len(part.given) > 1:
                    raise NotNativeError(
                        "the rows of a tick that it limits do not come at one time from Spark"
                    )
                stages.append(TopStage(replace(node, input=output)))
            case Join():
                stages += _lookups(node, output)
            case OuterJoin(OuterKind.LEFT):
                stages.append(LookupStage(replace(node, left=output)))
            case OuterJoin(OuterKind.RIGHT):
                stages.append(LookupStage(replace(node, right=output)))
            case _:
                raise AssertionError(node.kind)
        output = stages[-1].output
    return tuple(stages)


def _lookups(join: Join, output: Node) -> Iterator[EpilogueStage]:
    """One lookup a table; then the columns in the join's order."""
    moving = _moving(join)
    members = moving
    for table in (k for k in range(len(join.inputs)) if k not in moving):
        predicate = predicate_of_step(join, members, table, all_terms=len(members) == 1)
        members = (*members, table)
        output = Join((output, join.inputs[table]), predicate)
        yield LookupStage(output)
    if members != tuple(sorted(members)):
        yield FinishStage(in_order(join, members, output))


# The streaming part


@dataclass(frozen=True)
class _Part:
    """A stage and what is known of its rows.

    `given`: by how many milliseconds beyond the query's watermark the rows of a tick are given, each possible
    number; None if rows are given before their tick is closed, or do not tick.
    """

    stage: int
    output: Node
    hold_ms: int = 0
    given: frozenset[int] | None = None


def _table_below(node: Node) -> NotNativeError:
    _, tables = sources_of(node)
    return NotNativeError(
        f"the table {' and '.join(f'`{table}`' for table in sorted(tables))} is joined below something that "
        "keeps rows, but has to be seen as of the batch that gives the result"
    )


class _Lowering:
    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.probes: list[Probe] = []
        self._known: dict[Node, _Part] = {}

    def lower(self, node: Node) -> _Part:
        if node not in self._known:
            self._known[node] = self._lowered(node)
        return self._known[node]

    def _lowered(self, node: Node) -> _Part:
        match node:
            case StreamScan():
                return self._add(ReadStage(node))
            case TableScan():
                raise _table_below(node)
            case Filter(source) | Project(source):
                part = self.lower(source)
                return self._add(SelectStage(replace(node, input=part.output), part.stage), part)
            case Window(source):
                return self._window(node, self.lower(source))
            case Union(inputs):
                return self._union(node, [self.lower(source) for source in inputs])
            case Aggregate(source):
                part = self.lower(source)
                self._probe((source,), part.hold_ms)
                stage = AggregateStage(replace(node, input=part.output), _distinct(node), part.stage)
                return self._add(stage, part, frozenset({part.hold_ms}))
            case Join():
                return self._join(node)
            case OuterJoin():
                if any(isinstance(source.timing, Static) for source in node.inputs):
                    raise _table_below(node)
                left, right = self.lower(node.left), self.lower(node.right)
                self._probe(node.inputs, max(left.hold_ms, right.hold_ms))
                return self._binary_join(replace(node, left=left.output, right=right.output), left, right)
            case Top():
                raise NotNativeError(
                    "its ORDER BY … LIMIT is below something else, where Spark has no such thing"
                )
            case _:
                assert_never(node)

    def _add(self, stage: Stage, below: _Part | None = None, given: frozenset[int] | None = None) -> _Part:
        self.stages.append(stage)
        if below is None:
            return _Part(len(self.stages) - 1, stage.output)
        if given is None and isinstance(stage, SelectStage):
            given = below.given
        return _Part(len(self.stages) - 1, stage.output, below.hold_ms, given)

    def _window(self, node: Window, part: _Part) -> _Part:
        if isinstance(part.output.timing, Ticking) and part.given is None:
            raise NotNativeError(
                "it has a window over the rows of a window, which come before their tick is closed"
            )
        output = replace(node, input=part.output)
        if isinstance(node.window, TickWindow):
            return self._add(TicksStage(output, node.window, part.stage), part)
        assert isinstance(node.window, RangeWindow), node.window
        return self._add(KeepStage(output, part.stage), part)

    def _union(self, node: Union, parts: Sequence[_Part]) -> _Part:
        output = replace(node, inputs=tuple(part.output for part in parts))
        given: frozenset[int] | None = None
        if all(part.given is not None for part in parts):
            given = frozenset[int]().union(*(part.given or () for part in parts))
        elif not isinstance(output.timing, Ticking) and any(
            isinstance(part.output.timing, Ticking) and part.given is None for part in parts
        ):
            raise NotNativeError(
                "it unites streams with rows of a window, which come before their tick is closed"
            )
        self.stages.append(UniteStage(output, tuple(part.stage for part in parts)))
        hold_ms = max(part.hold_ms for part in parts)
        return _Part(
            len(self.stages) - 1, output, hold_ms, given if isinstance(output.timing, Ticking) else None
        )

    def _join(self, join: Join) -> _Part:
        """A chain of joins of two."""
        if _moving(join) != tuple(range(len(join.inputs))):
            raise _table_below(join)
        members: tuple[int, ...] = (0,)
        part = self.lower(join.inputs[0])
        while len(members) < len(join.inputs):
            new = self._next(join, members)
            right = self.lower(join.inputs[new])
            predicate = predicate_of_step(join, members, new, all_terms=len(members) == 1)
            step = Join((part.output, right.output), predicate)
            met_first = (join.inputs[0], join.inputs[new]) if len(members) == 1 else (join.inputs[new],)
            self._probe(met_first, max(part.hold_ms, right.hold_ms))
            part = self._binary_join(step, part, right)
            members = (*members, new)
        if members != tuple(sorted(members)):
            part = self._add(SelectStage(in_order(join, members, part.output), part.stage), part)
        return part

    def _next(self, join: Join, members: tuple[int, ...]) -> int:
        """The next input to join: the first that an equality leads to."""
        left = [k for k in range(len(join.inputs)) if k not in members]
        for new in left:
            sides = (
                restricted(join, members) if len(members) > 1 else join.inputs[members[0]],
                join.inputs[new],
            )
            if equalities(Join(sides, predicate_of_step(join, members, new, all_terms=False))):
                return new
        if isinstance(join.timing, Windowed):
            raise NotNativeError("it joins rows of streams without an equality, which Spark refuses")
        return left[0]

    def _binary_join(self, node: Join | OuterJoin, left: _Part, right: _Part) -> _Part:
        hold_ms = max(left.hold_ms, right.hold_ms)
        if isinstance(node.timing, Ticking):
            self.stages.append(TickJoinStage(node, left.stage, right.stage))
            return _Part(len(self.stages) - 1, node, hold_ms, _given(node, left, right))
        if not equalities(node):
            raise NotNativeError("it joins rows of streams without an equality, which Spark refuses")
        left_range_us, right_range_us = _range_us(left.output), _range_us(right.output)
        self.stages.append(IntervalJoinStage(node, left.stage, right.stage, left_range_us, right_range_us))
        hold_ms += -(-max(left_range_us, right_range_us) // _US_PER_MS)
        return _Part(len(self.stages) - 1, node, hold_ms)

    def _probe(self, sources: Sequence[Node], hold_ms: int) -> None:
        """Some inputs of an operator that keeps state are about to enter it."""
        for source in sources:
            self.probes += _probes(source, hold_ms)


def _probes(
    node: Node,
    hold_ms: int,
    terms: tuple[Expression, ...] = (),
    window: TickWindow | None = None,
    tick_terms: tuple[Expression, ...] = (),
) -> Iterator[Probe]:
    """The ways of rows from streams to `node`, unless an operator that keeps state is on them.

    The terms are over the columns of the node.
    """
    match node:
        case StreamScan():
            yield Probe(node, conjunction(terms), window, conjunction(tick_terms), hold_ms)
        case Filter(source, predicate):
            yield from _probes(source, hold_ms, (*conjuncts(predicate), *terms), window, tick_terms)
        case Project(source, expressions):
            terms = tuple(substitute(term, expressions.__getitem__) for term in terms)
            tick_terms = tuple(substitute(term, expressions.__getitem__) for term in tick_terms)
            yield from _probes(source, hold_ms, terms, window, tick_terms)
        case Window(source, TickWindow() as window):
            tick_terms = tuple(term for term in terms if _has_edge(term))
            terms = tuple(term for term in terms if not _has_edge(term))
            yield from _probes(source, hold_ms, terms, window, tick_terms)
        case Window(source) | Top(source):
            yield from _probes(source, hold_ms, terms, window, tick_terms)
        case Union(inputs):
            for source in inputs:
                yield from _probes(source, hold_ms, terms, window, tick_terms)
        case Aggregate() | Join() | OuterJoin() | TableScan():
            return
        case _:
            assert_never(node)


def _has_edge(expression: Expression) -> bool:
    return any(isinstance(part, WindowEdge) for part in walk(expression))


# What is known of stages


def _distinct(node: Aggregate) -> Distinct:
    counted = [call for call in node.aggregates if call.function == "count_distinct"]
    if not counted:
        return Distinct.NONE
    if set(node.aggregates) == {counted[0]} and counted[0].filter is None:
        return Distinct.TWO_STEPS
    return Distinct.SETS


def _range_us(node: Node) -> int:
    """For how long a row is there at most, from the latest of its event times on.

    A combination is there until the first of its windows ends; but where there are outer joins, which of
    them are present is not known.
    """
    assert isinstance(node.timing, Windowed), node.kind
    return max(node.timing.ranges_us) if _may_lack_rows(node) else min(node.timing.ranges_us)


def _may_lack_rows(node: Node) -> bool:
    match node:
        case Filter(source) | Project(source):
            return _may_lack_rows(source)
        case Join(inputs):
            return any(_may_lack_rows(source) for source in inputs)
        case OuterJoin():
            return True
        case _:
            return False


def _given(join: Join | OuterJoin, left: _Part, right: _Part) -> frozenset[int] | None:
    """When the rows of a tick join are given.

    Matches when the later side's rows are; rows without match when the tick is closed for both sides, or at
    once if the predicate alone says that there is none.
    """
    given = [_given_of_matches(left, right)]
    if isinstance(join, OuterJoin):
        closed = frozenset({max(left.hold_ms, right.hold_ms)})
        first_of_right = join.starts[1]
        terms = [columns_of(term) for term in conjuncts(join.predicate)]
        if join.outer is not OuterKind.RIGHT:
            alone = any(max(columns, default=-1) < first_of_right for columns in terms)
            given += [closed, left.given] if alone else [closed]
        if join.outer is not OuterKind.LEFT:
            alone = any(min(columns, default=first_of_right) >= first_of_right for columns in terms)
            given += [closed, right.given] if alone else [closed]
    known = [each for each in given if each is not None]
    return frozenset[int]().union(*known) if len(known) == len(given) else None


def _given_of_matches(left: _Part, right: _Part) -> frozenset[int] | None:
    if left.given is not None and right.given is not None:
        return frozenset(max(one, other) for one in left.given for other in right.given)
    for closed, flowing in ((left, right), (right, left)):
        if closed.given is not None:
            return closed.given if flowing.hold_ms <= min(closed.given) else None
    return None
