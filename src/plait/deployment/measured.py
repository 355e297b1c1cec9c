"""Which operators of a fragment on Spark's own streaming operators are measured, and what they are called.

Spark makes other operators of stages than we say: it puts filters together, computes columns on the way, and
compiles what is in a row into one. So stages are put together in the same way here, to what can be told apart
afterwards (`plait.spark.measuring`):

| operator | of stages | rows out |
|---|---|---|
| reading | a stream, and the filters right above | those that pass |
| filter | the filters above an operator that keeps state | those that pass |
| aggregation, join | one | groups, combinations |
| partial, final aggregation | the two of a tree | partials, groups of windows |
| handing out | what is done with each micro-batch | rows of queries |

An operator is named by the signature of what it gives, or, if a family has it in common, by what the family
is: so it has the same name after every start, whoever else is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from plait.deployment.fragments import Family, Fragment
from plait.deployment.stages import (
    AggregateStage,
    Distinct,
    IntervalJoinStage,
    KeepStage,
    ReadStage,
    SelectStage,
    Stage,
    TickJoinStage,
    TicksStage,
    UniteStage,
)
from plait.expressions.keeping import kept
from plait.observations import OperatorForm
from plait.plan.nodes import Aggregate, Filter, Node, Ticking, Window
from plait.plan.signature import signature
from plait.sharing import identity
from plait.sharing.chains import chain_above
from plait.sharing.joins import WovenJoin
from plait.sharing.selects import WovenSelect
from plait.sharing.trees import WovenAggregate

HAND_OUT = "hand_out:"  # of which a fragment has one

_US_PER_S = 1_000_000


@dataclass(frozen=True)
class Measured:
    """An operator and those it takes rows from; one that reads has a stream, by key. `nodes` are those of the
    plan that have as many rows as it gives. An aggregation closes so many `windows_per_s`, and `weights` are
    the parts that queries have in it, if they are not the same."""

    id: str
    form: OperatorForm
    inputs: tuple[Measured, ...] = ()
    nodes: tuple[Node, ...] = ()
    stream: str | None = None
    windows_per_s: float | None = None
    weights: Mapping[str, float] | None = None
    is_at_ticks: bool = False  # each row once for every tick that has it

    @property
    def keeps_state(self) -> bool:
        """Whether rows may come out in a later batch than those they are made of."""
        return self.form in _KEEPING_STATE or any(each.keeps_state for each in self.inputs)

    def walk(self) -> Iterator[Measured]:
        """Inputs first, as rows go."""
        for each in self.inputs:
            yield from each.walk()
        yield self


_KEEPING_STATE = frozenset(
    {
        OperatorForm.AGGREGATE,
        OperatorForm.DISTINCT,
        OperatorForm.FINALS,
        OperatorForm.JOIN,
        OperatorForm.PARTIALS,
        OperatorForm.TICK_JOIN,
    }
)


def measured(stages: Sequence[Stage]) -> Measured:
    """The operators of stages, the last of which gives the rows."""
    return _measured(stages, len(stages) - 1)


def measured_family(family: Family, stages: Sequence[Stage]) -> Measured:
    """The operators of a family, whose rows come out of these stages first."""
    first = family[0]
    match first:
        case WovenSelect():
            return _named(measured(stages), identity.of_select(first.key))
        case WovenJoin():
            return _named(measured(stages), identity.of_join(first.key))
        case WovenAggregate():
            members = [each for each in family if isinstance(each, WovenAggregate)]
            return _tree(members, _named(measured(stages), identity.of_tree(first.key)))
        case _:
            assert_never(first)


@kept
def measured_nodes(fragment: Fragment) -> dict[Node, str]:
    """The operators that give the rows of nodes in the plans of a fragment, as far as these are known."""
    if fragment.stages is not None:
        found: dict[Node, str] = {}
        for each in measured(fragment.stages.streaming).walk():
            found |= dict.fromkeys(each.nodes, each.id)
        return found
    first = fragment.family[0] if fragment.family else None
    if not isinstance(first, WovenAggregate) or len({_selection(each) for each in fragment.family}) > 1:
        return {}
    # All select the same rows.
    read = _id(OperatorForm.READ, identity.of_tree(first.key))
    return dict.fromkeys(filter(None, map(_below_window, (each.plan for each in fragment.results))), read)


def _measured(stages: Sequence[Stage], place: int) -> Measured:
    stage = stages[place]
    inputs = tuple(_measured(stages, each) for each in stage.inputs)
    node = stage.output
    match stage:
        case ReadStage(scan):
            return _operator(OperatorForm.READ, node, stream=scan.stream.lower())
        case SelectStage(Filter()):
            (below,) = inputs
            if below.form in (OperatorForm.READ, OperatorForm.FILTER) and not below.is_at_ticks:
                return replace(below, id=_id(below.form, signature(node)), nodes=(node,))
            return _operator(OperatorForm.FILTER, node, inputs, is_at_ticks=below.is_at_ticks)
        case SelectStage() | KeepStage():
            return replace(inputs[0], nodes=(*inputs[0].nodes, node))
        case TicksStage():
            return replace(inputs[0], nodes=(*inputs[0].nodes, node), is_at_ticks=True)
        case UniteStage():
            return _operator(OperatorForm.UNION, node, inputs)
        case AggregateStage():
            if stage.distinct is Distinct.TWO_STEPS:
                values = _id(OperatorForm.DISTINCT, signature(node))
                inputs = (Measured(values, OperatorForm.DISTINCT, inputs),)
            assert isinstance(node.timing, Ticking), node.kind
            return _operator(
                OperatorForm.AGGREGATE, node, inputs, windows_per_s=_US_PER_S / node.timing.slide_us
            )
        case IntervalJoinStage():
            return _operator(OperatorForm.JOIN, node, inputs)
        case TickJoinStage():
            return _operator(OperatorForm.TICK_JOIN, node, inputs)
        case _:
            assert_never(stage)


def _operator(
    form: OperatorForm,
    node: Node,
    inputs: tuple[Measured, ...] = (),
    *,
    stream: str | None = None,
    windows_per_s: float | None = None,
    is_at_ticks: bool = False,
) -> Measured:
    id_ = _id(form, signature(node))
    return Measured(id_, form, inputs, (node,), stream, windows_per_s, is_at_ticks=is_at_ticks)


def _tree(members: Sequence[WovenAggregate], rows: Measured) -> Measured:
    """A window takes each partial as often as it overlaps itself, for all queries that have it."""
    name = identity.of_tree(members[0].key)
    having: dict[object, list[str]] = {}
    for each in members:
        having.setdefault((each.selection, each.window), []).append(each.query)
    overlap = {each.query: each.window.range_us / each.window.slide_us for each in members}
    weights = {query: overlap[query] / len(queries) for queries in having.values() for query in queries}
    windows = {(each.selection, each.window): _US_PER_S / each.window.slide_us for each in members}
    partials = Measured(_id(OperatorForm.PARTIALS, name), OperatorForm.PARTIALS, (rows,))
    return Measured(
        _id(OperatorForm.FINALS, name),
        OperatorForm.FINALS,
        (partials,),
        windows_per_s=sum(windows.values()),
        weights=weights,
    )


def _named(operator: Measured, name: str, path: str = "") -> Measured:
    """The same, whatever the queries select: operators of a kind are told apart by where they stand."""
    inputs = tuple(_named(each, name, f"{path}{k}") for k, each in enumerate(operator.inputs))
    own = identity.short(name, path) if path else name
    return replace(operator, id=_id(operator.form, own), inputs=inputs, nodes=())


def _id(form: OperatorForm, name: str) -> str:
    return f"{form.name.lower()}:{name[:16]}"


def _selection(member: WovenSelect | WovenAggregate | WovenJoin) -> object:
    return member.selections if isinstance(member, WovenJoin) else member.selection


def _below_window(plan: Node) -> Node | None:
    aggregate = chain_above(plan).base
    if isinstance(aggregate, Aggregate) and isinstance(aggregate.input, Window):
        return aggregate.input.input
    return None
