"""What of a plan is stored, and in which stages the rest is computed.

The state of a query is a few **stores**, each a table of rows with their event times:

- the rows of the inputs, as they are handed over (`Given`);
- the rows of a sub-plan that is used as a stream by a window above it, once they are final (`Derived`): they
  are computed once, and a stored table below them is seen as of the batch that gave them;
- the rows that a row window counts, with their numbers (`Numbered`).

Filters, projections and unions of inputs need no store: they are computed row by row where they are read.

A **stage** computes a part of the plan over the stores: what it gives is added to a store, or is the result.
Stages are in an order in which each finds in the stores what it needs. What several stages compute (`shared`)
can be held for a batch (`Held`): a stage of its own computes it, and the others read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from plait.engines.incremental.bands import Band, hull, needed_of_inputs
from plait.errors import InternalError
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    RowWindow,
    StreamScan,
    Top,
    Union,
    Window,
)
from plait.plan.signature import signature


@dataclass(frozen=True)
class Given:
    """The rows of an input."""

    table: str
    node: Node


@dataclass(frozen=True)
class Derived:
    """The rows of a sub-plan, with the event times that they have as a stream."""

    table: str
    node: Node


@dataclass(frozen=True)
class Numbered:
    """The rows of a row window's input, numbered within their partition."""

    table: str
    node: Node
    window: RowWindow


@dataclass(frozen=True)
class Held:
    """The rows of a sub-plan in one batch, for all stages that need them."""

    table: str
    node: Node


Store: TypeAlias = Given | Derived | Numbered | Held


@dataclass(frozen=True)
class Stage:
    """Computes `plan`, and puts its rows into a store; without one, they are the result."""

    plan: Node
    target: Derived | Numbered | Held | None


class Layout:
    """The stores and stages of plans whose streams are handed over as the rows of `inputs`.

    `prefix` begins the names of all tables. Stores are named by what they hold: plans may come and go.
    """

    def __init__(self, plans: Sequence[Node], inputs: Sequence[Node], prefix: str) -> None:
        self._prefix = prefix
        self.given: Mapping[Node, Given] = {
            node: Given(f"{prefix}input_{_name(node)}", node) for node in dict.fromkeys(inputs)
        }
        self.derived: dict[Node, Derived] = {}
        self.numbered: dict[Node, Numbered] = {}
        self.held: dict[Node, Held] = {}  # for the batch that is being computed
        self.stages: list[Stage] = []
        for plan in dict.fromkeys(plans):
            for node in _ordered(plan, self._inputs_above_given):
                if isinstance(node, StreamScan) and node not in self.given:
                    raise InternalError("no-input", f"no input gives rows of stream `{node.stream}`")
                if isinstance(node, Window) and node not in self.given:
                    self._store_input(node, node.input)
            self.stages.append(Stage(plan, None))

    @cached_property
    def stores(self) -> tuple[Store, ...]:
        return (*self.given.values(), *self.derived.values(), *self.numbered.values())

    @cached_property
    def shared(self) -> Mapping[Stage, Sequence[Node]]:
        """For each stage the nodes that it should not compute by itself, inputs before what uses them: others
        need them, too, and they are no rows that are just read."""
        users: dict[Node, set[Node | Stage]] = {}
        stages: dict[Node, set[Stage]] = {}
        nodes = {stage: self.nodes(stage) for stage in self.stages}
        for stage in self.stages:
            users.setdefault(stage.plan, set()).add(stage)
            for node in nodes[stage]:
                stages.setdefault(node, set()).add(stage)
                for source in self.inputs(node):
                    users.setdefault(source, set()).add(node)
        worth_it = {
            node
            for node, of in stages.items()
            if isinstance(node, Aggregate | Join | OuterJoin | Top) and len(of) > 1 and len(users[node]) > 1
        }
        return {stage: [node for node in nodes[stage] if node in worth_it] for stage in self.stages}

    def holding(self, node: Node) -> Stage:
        """The stage that computes a node for the others."""
        return Stage(node, Held(f"{self._prefix}held_{len(self.held)}", node))

    def nodes(self, stage: Stage) -> list[Node]:
        """What a stage computes, inputs before what uses them; it ends at windows over stores."""
        return list(_ordered(stage.plan, lambda node: self.inputs_in(stage, node)))

    def inputs_in(self, stage: Stage, node: Node) -> tuple[Node, ...]:
        """The inputs of a node that are computed in the same stage."""
        return () if self.reads_held(stage, node) else self.inputs(node)

    def inputs(self, node: Node) -> tuple[Node, ...]:
        """The inputs that are computed in the same stage, unless something is held."""
        reads_store = isinstance(node, Window) and (node in self.numbered or node.input in self.derived)
        return () if reads_store else self._inputs_above_given(node)

    def reads_held(self, stage: Stage, node: Node) -> bool:
        """Whether a stage has the rows of a node from those that are held."""
        return node in self.held and stage.target != self.held[node]

    def store_read_by(self, stage: Stage, node: Node) -> Store | None:
        """The store whose rows a node reads, if it reads one."""
        if self.reads_held(stage, node):
            return self.held[node]
        if node in self.given:
            return self.given[node]
        if isinstance(node, Window):
            return self.numbered.get(node) or self.derived.get(node.input)
        return None

    def bands(self, stage: Stage, band: Band) -> dict[Node, Band]:
        """What each node of a stage has to give so that the stage gives its rows of the band."""
        needed: dict[Node, list[Band]] = {stage.plan: [band]}
        for node in reversed(self.nodes(stage)):
            own = hull(needed[node])
            inputs = self.inputs_in(stage, node)
            if inputs:
                for source, part in zip(inputs, needed_of_inputs(node, own), strict=True):
                    needed.setdefault(source, []).append(part)
        return {node: hull(parts) for node, parts in needed.items()}

    def store_bands(self, stage: Stage, bands: Mapping[Node, Band]) -> dict[Store, Band]:
        """Which rows of the stores are read to give what the nodes of a stage have to give."""
        read: dict[Store, list[Band]] = {}
        for node, band in bands.items():
            store = self.store_read_by(stage, node)
            if store is not None:
                own_rows = not isinstance(store, Derived)
                read.setdefault(store, []).append(band if own_rows else needed_of_inputs(node, band)[0])
        return {store: hull(parts) for store, parts in read.items()}

    def _store_input(self, node: Window, source: Node) -> None:
        if isinstance(node.window, RowWindow):
            if node not in self.numbered:
                store = Numbered(f"{self._prefix}numbered_{_name(node)}", node, node.window)
                self.numbered[node] = store
                self.stages.append(Stage(source, store))
        elif not self._is_row_by_row(source) and source not in self.derived:
            self.derived[source] = Derived(f"{self._prefix}derived_{_name(source)}", source)
            self.stages.append(Stage(source, self.derived[source]))

    def _is_row_by_row(self, node: Node) -> bool:
        if node in self.given:
            return True
        if isinstance(node, Filter | Project | Union):
            return all(self._is_row_by_row(source) for source in node.inputs)
        return False

    def _inputs_above_given(self, node: Node) -> tuple[Node, ...]:
        return () if node in self.given else node.inputs


def _name(node: Node) -> str:
    return signature(node)[:16]


def _ordered(plan: Node, inputs: Callable[[Node], tuple[Node, ...]]) -> Iterator[Node]:
    """Every node once, inputs before what uses them."""
    seen: set[Node] = set()
    stack = [(plan, False)]
    while stack:
        node, expanded = stack.pop()
        if node in seen:
            continue
        if expanded:
            seen.add(node)
            yield node
        else:
            stack.append((node, True))
            stack.extend((source, False) for source in reversed(inputs(node)))
