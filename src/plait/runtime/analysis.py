"""A query as it was planned, beside what was observed of it: what `plait explain --analyze` shows.

All of it is read from the statistics of a state folder, whether a system runs there or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from shlex import quote
from typing import Any

from plait.errors import UserError, closest
from plait.observations import OperatorForm
from plait.quantity_text import bytes_text, counted, number_text
from plait.runtime.cost_shares import cost_shares, parts
from plait.runtime.descriptions import FRAGMENT, QUERY
from plait.runtime.outlets import recorded
from plait.runtime.slots import Slot, by_fragment
from plait.runtime.statistics_file import FILE, read
from plait.table_text import table_text

NAMES_SHOWN = 3

# What is counted of that which has a rate, by its kind.
_COUNTS = {"stream": "read", "operator": "out"}

_COLUMNS = (
    "step",
    "",
    "rows/s",
    "observed",
    "passes",
    "observed",
    "holds",
    "observed",
    "serves",
)


@dataclass(frozen=True)
class Numbers:
    """Of a step: rows a second, of a filter the share of rows that it lets pass, and the rows of a window or
    the groups of an aggregate. None is "not known", or that there is no such number."""

    rows_per_s: float | None
    passes: float | None
    rows: float | None


@dataclass(frozen=True)
class Step:
    """A step of a plan: what was estimated, by what it is known, and what was observed. `serves` are the
    queries that have the step computed for them."""

    number: int
    inputs: tuple[int, ...]
    kind: str
    text: str
    estimated: Numbers
    basis: str
    observed: Numbers
    serves: tuple[str, ...]


@dataclass(frozen=True)
class AnalysedOperator:
    """What computes a query, alone or with others: rows that came in, that were made of them on the way and
    that were given, seconds, rows and groups that it remembers, the queries that it serves, and the streams
    that it reads. Of Spark's operators also bytes: those that went from task to task, and those that are
    kept; their groups are those of a window. `share` is the query's part of the seconds."""

    form: str
    rows_in: int
    rows_made: int
    rows_out: int
    seconds: float
    kept_rows: int | None
    groups: int | None
    queries: tuple[str, ...]
    streams: tuple[str, ...]
    share: float
    moved_bytes: int | None
    kept_bytes: int | None


@dataclass(frozen=True)
class Analysis:
    """A query. `batches` and `seconds` are those of its fragment, of the last ten minutes that it ran;
    `cost_share` is the query's part of the time of all queries."""

    query: str
    fragment: str
    way: str
    steps: tuple[Step, ...]
    operators: tuple[AnalysedOperator, ...]
    batches: int
    seconds: float
    state_bytes: int | None
    queries: int
    cost_share: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def to_text(self, width: int | None = None) -> str:
        cells = [_cells(step) for step in self.steps]
        others = counted(self.queries - 1, "other query", "other queries")
        shown = [
            f"{self.query}, in {self.fragment} with {others}",
            table_text(_COLUMNS, cells, numeric={2, 3, 4, 5, 6, 7}, width=width),
            "\n".join(map(_operator_text, self.operators)),
            self._cost_text(),
        ]
        return "\n\n".join(filter(None, shown))

    def _cost_text(self) -> str:
        if not self.batches:
            return "nothing was observed yet"
        each = self.seconds / self.batches
        state = "" if self.state_bytes is None else f"; its state has {bytes_text(self.state_bytes)}"
        batches = counted(self.batches, "batch", "batches")
        return (
            f"{self.fragment}: {batches}, {each * 1000:,.0f} ms each{state}\n"
            f"cost share: {self.cost_share:.2%} of the time of all queries"
        )

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_text())}</pre>"


def analyse(state: Path, query: str) -> Analysis:
    """What a state folder knows of a query that runs, or ran last."""
    slots, documents = read(state / FILE)
    plans = documents.get(QUERY, {})
    names = {name.lower(): name for name in plans}
    if not plans:
        raise UserError(
            "not-observed",
            f"nothing was observed in {state} so far",
            hint="run the queries with that --state, or name another folder",
        )
    if query.lower() not in names and query.lower() in recorded(state):
        raise UserError(
            "not-computed",
            f"the query `{query}` is not computed any more: it was dropped, or has failed",
            hint=f"plait list --state {quote(str(state))} says of a query that has failed why",
        )
    if query.lower() not in names:
        hint = closest(query, [*plans]) or "`plait list` shows the queries of a running system"
        raise UserError("unknown-query", f"there is no query `{query}` in {state}", hint=hint)
    name = names[query.lower()]
    return _analysis(name, plans[name], documents[FRAGMENT], by_fragment(slots))


def _analysis(
    query: str,
    plan: Mapping[str, Any],
    fragments: Mapping[str, Mapping[str, Any]],
    recent: Mapping[str, Slot],
) -> Analysis:
    name = plan["fragment"]
    fragment = fragments[name]
    slot = recent.get(name, Slot())
    operators = {id_: each for id_, each in fragment["operators"].items() if query in each["queries"]}
    state_bytes = slot.last.get("state_bytes")
    return Analysis(
        query,
        name,
        fragment["way"],
        tuple(_steps(query, plan["steps"], fragment, [*operators.values()], slot)),
        tuple(_operator(id_, each, slot, query) for id_, each in operators.items()),
        int(slot.sums.get("batches", 0)),
        slot.sums.get("seconds", 0.0),
        _whole(state_bytes),
        len(fragment["queries"]),
        cost_shares(fragments, recent).get(query, 0.0),
    )


def _steps(
    query: str,
    steps: Sequence[Mapping[str, Any]],
    fragment: Mapping[str, Any],
    operators: Sequence[Mapping[str, Any]],
    slot: Slot,
) -> list[Step]:
    serves = min((each["queries"] for each in operators), key=len, default=fragment["queries"])
    estimated = {step["number"]: step["rows_per_s"] for step in steps}
    observed = {step["number"]: _rate(step["rate"], slot) for step in steps}
    counts = {step["number"]: _count(step["rate"], slot) for step in steps}
    return [
        Step(
            step["number"],
            tuple(step["inputs"]),
            step["kind"],
            step["text"],
            Numbers(step["rows_per_s"], _passing(step, estimated), step["rows"]),
            step["basis"],
            Numbers(
                observed[step["number"]],
                # Before there is a rate, there are rows.
                _first(_passing(step, observed), _passing(step, counts)),
                _held(query, step, observed, slot),
            ),
            tuple(serves if step["stream"] is None else fragment["readers"][step["stream"]]),
        )
        for step in steps
    ]


def _rate(name: str | None, slot: Slot) -> float | None:
    if name is None:
        return None
    kind, _, of = name.partition(" ")
    return slot.last.get(name) if kind == "selected" else slot.rate(of)


def _passing(step: Mapping[str, Any], rates: Mapping[int, float | None]) -> float | None:
    """Which share of the rows of its input a filter gives."""
    if step["kind"] != "filter":
        return None
    given, read_ = rates[step["number"]], rates[step["inputs"][0]]
    return given / read_ if given is not None and read_ else None


def _count(name: str | None, slot: Slot) -> float | None:
    """How many rows there were of what has a rate."""
    kind, _, of = (name or "").partition(" ")
    return slot.sums.get(f"{_COUNTS[kind]} {of}") if kind in _COUNTS else None


def _held(query: str, step: Mapping[str, Any], rates: Mapping[int, float | None], slot: Slot) -> float | None:
    """The groups of an aggregate, or the rows of a window."""
    if step["has_groups"] and (groups := slot.last.get(f"groups {query}")) is not None:
        return groups
    rate, seconds = rates[step["number"]], step.get("seconds")
    return None if rate is None or seconds is None else rate * seconds


def _operator(id_: str, operator: Mapping[str, Any], slot: Slot, query: str) -> AnalysedOperator:
    kept, groups = slot.last.get(f"kept {id_}"), slot.last.get(f"groups {id_}")
    rate, windows_per_s = slot.rate(id_), operator.get("windows_per_s")
    if groups is None and rate is not None and windows_per_s:
        groups = round(rate / windows_per_s)
    return AnalysedOperator(
        operator["form"],
        int(slot.sums.get(f"in {id_}", 0)),
        int(slot.sums.get(f"made {id_}", 0)),
        int(slot.sums.get(f"out {id_}", 0)),
        slot.sums.get(f"seconds {id_}", 0.0),
        _whole(kept),
        _whole(groups),
        tuple(operator["queries"]),
        tuple(operator.get("streams", ())),
        parts(operator, slot.sums)[query],
        _whole(slot.sums.get(f"moved {id_}")),
        _whole(slot.last.get(f"kept_bytes {id_}")),
    )


def _cells(step: Step) -> list[str]:
    estimated, observed = step.estimated, step.observed
    of = f" of {', '.join(map(str, step.inputs))}" if step.inputs else ""
    return [
        f"{step.number}. {step.kind}{of}",
        step.text,
        _number(estimated.rows_per_s),
        _number(observed.rows_per_s),
        _share(estimated.passes),
        _share(observed.passes),
        _number(estimated.rows),
        _number(observed.rows),
        _names(step.serves),
    ]


def _operator_text(operator: AnalysedOperator) -> str:
    made = f", {operator.rows_made:,} made of them" if operator.rows_made else ""
    moved = "" if operator.moved_bytes is None else f", {bytes_text(operator.moved_bytes)} between tasks"
    share = f" ({operator.share:.1%} of it this query's)" if len(operator.queries) > 1 else ""
    held = [] if operator.kept_rows is None else [f"keeps {counted(operator.kept_rows, 'row')}"]
    if operator.groups is not None:
        held.append(f"of {counted(operator.groups, 'group')}")
    if operator.kept_bytes is not None:
        held.append(f"in {bytes_text(operator.kept_bytes)}")
    kept = f"; {' '.join(held)}" if held else ""
    form = operator.form
    if form == OperatorForm.READ:
        form += f" of {', '.join(operator.streams)}"
    return (
        f"{form}, for {_names(operator.queries)}: {operator.rows_in:,} rows in{made}, "
        f"{operator.rows_out:,} out, {operator.seconds * 1000:,.0f} ms{share}{moved}{kept}"
    )


def _names(queries: Sequence[str]) -> str:
    if len(queries) == 1:
        return queries[0]
    more = len(queries) - NAMES_SHOWN
    shown = ", ".join(queries[:NAMES_SHOWN])
    return f"{len(queries):,} queries: {shown}" + (f" and {more:,} more" if more > 0 else "")


def _first(value: float | None, other: float | None) -> float | None:
    return other if value is None else value


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _number(value: float | None) -> str:
    return "" if value is None else number_text(value)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
