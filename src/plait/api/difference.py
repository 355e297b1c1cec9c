"""What a change of the set of queries would do: in words, as a document, and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plait.api.html import html_text
from plait.api.live import Merged
from plait.errors import Source
from plait.picture.deployed import diagram_of
from plait.picture.diagram import Box, Diagram
from plait.picture.dot import to_dot
from plait.picture.svg import to_svg
from plait.quantity_text import bytes_text, counted, number_text
from plait.runtime.waiting import time_text
from plait.table_text import table_text

if TYPE_CHECKING:  # loading it takes a moment
    from plait.deployment.deployment import Cost
    from plait.runtime.difference import Difference as Found
    from plait.runtime.difference import StateInView

VERSION = 1
NAMES_SHOWN = 5


class Difference:
    """What would start, stop and stay, what would happen to what is kept, and what it would cost."""

    def __init__(self, found: Found) -> None:
        self._found = found

    @property
    def added(self) -> dict[str, int | None]:
        """The queries that would be added, with the moments after which they would see rows, if made now."""
        return {query.name: query.after_us for query in self._found.added}

    @property
    def dropped(self) -> tuple[str, ...]:
        return tuple(query.name for query in self._found.dropped)

    @property
    def merged(self) -> Merged:
        """The queries that would be handed over, and those that would not."""
        return Merged.from_json(self._found.merged.to_json())

    @property
    def restarted(self) -> tuple[str, ...]:
        """The streaming queries that would be started again, and go on where they were."""
        return tuple(stage.fragment for stage in self._found.stages if stage.restarts)

    @property
    def headline(self) -> str:
        parts = [
            f"{what} {counted(len(queries), 'query', 'queries')}"
            for what, queries in (
                ("add", self.added),
                ("drop", self.dropped),
                ("merge", self.merged.queries),
            )
            if queries
        ]
        system = "the system runs" if self._found.is_running else "the system is stopped"
        return f"would {' and '.join(parts) or 'change nothing'}; {system}"

    def to_text(self, width: int | None = None) -> str:
        parts = [self.headline, *self._queries(width), *self._stages(width), self._costs(width)]
        return "\n\n".join(parts)

    def to_json(self) -> dict[str, Any]:
        found = self._found
        return {
            "version": VERSION,
            "running": found.is_running,
            "added": [asdict(query) for query in found.added],
            "dropped": [asdict(query) for query in found.dropped],
            "merged": found.merged.to_json(),
            "stages": [asdict(stage) for stage in found.stages],
            "cost": {
                "before": None if found.before is None else asdict(found.before),
                "after": None if found.after is None else asdict(found.after),
            },
        }

    def to_dot(self) -> str:
        return to_dot(self._diagram())

    def to_svg(self) -> str:
        return to_svg(self._diagram())

    def _diagram(self) -> Diagram:
        """The plan of all queries, in which is marked what would start and stop."""
        added, dropped = {*self.added}, {*self.dropped}

        def marked(box: Box) -> Box:
            if box.queries and box.queries <= added:
                return replace(box, mark="starts")
            return replace(box, mark="stops") if box.queries and box.queries <= dropped else box

        whole = diagram_of(self._found.everything, "")
        return replace(
            whole,
            title=self.headline,
            caption=f"cores: {self._number('cores')}; kept: {self._number('state_bytes')}",
            boxes=tuple(map(marked, whole.boxes)),
        )

    def _queries(self, width: int | None) -> Iterator[str]:
        rows = []
        for query in self._found.added:
            seen = "all rows" if query.after_us is None else f"what comes after {time_text(query.after_us)}"
            rows.append(["starts", query.name, seen, _names(query.shares_with) or "nobody"])
        if rows:
            yield table_text(["", "query", "sees", "shares with"], rows, width=width)
        lines = [
            f"stops  {query.name}; its results stay"
            + (f"; read by {_names(query.read_by)}, which go on" if query.read_by else "")
            for query in self._found.dropped
        ]
        if lines:
            yield "\n".join(lines)
        rows = [
            [each.name, each.leaves, each.fragment, time_text(each.until_us)] for each in self.merged.queries
        ]
        if rows:
            yield table_text(["merged", "leaves", "for", "which gives what comes from"], rows, width=width)
        lines = [f"stays  {name}, as {why}" for name, why in self.merged.staying.items()]
        if lines:
            yield "\n".join(lines)

    def _stages(self, width: int | None) -> Iterator[str]:
        rows = []
        for stage in self._found.stages:
            restarts = f"starts again: {stage.restarts}" if stage.restarts else "no"
            restarts = restarts if stage.do not in ("start", "stop") else ""
            rows.append(
                [stage.do, stage.fragment, stage.way, _names(stage.queries) or "none", restarts, stage.state]
            )
        if rows:
            yield table_text(["", "fragment", "way", "queries", "restart", "state"], rows, width=width)

    def _costs(self, width: int | None) -> str:
        before, after = self._found.before, self._found.after
        rows = [
            ["cores", *(number_text(0.0 if cost is None else cost.cores) for cost in (before, after))],
            ["kept", *(bytes_text(0.0 if cost is None else cost.state_bytes) for cost in (before, after))],
        ]
        return table_text(["estimated", "before", "after"], rows, numeric=(1, 2), width=width)

    def _number(self, name: str) -> str:
        def text(cost: Cost | None) -> str:
            value = 0.0 if cost is None else getattr(cost, name)
            return bytes_text(value) if name == "state_bytes" else number_text(value)

        return f"{text(self._found.before)} before, {text(self._found.after)} after"

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return html_text(self.to_text()) + self.to_svg()


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def would_add(state: str | Path, source: Source, folder: Path) -> Difference:
    from plait.runtime.changes import Addition

    return Difference(_view(state).added(Addition(source, folder.absolute())))


def would_merge(state: str | Path) -> Difference:
    return Difference(_view(state).merged())


def would_drop(state: str | Path, queries: Sequence[str]) -> Difference:
    return Difference(_view(state).dropped(queries))


def against(state: str | Path, texts: Sequence[tuple[Path, Source]]) -> Difference:
    """What it would take to compute what the texts declare."""
    return Difference(_view(state).compared(texts))


def _view(state: str | Path) -> StateInView:
    from plait.runtime.difference import StateInView

    return StateInView(Path(state))
