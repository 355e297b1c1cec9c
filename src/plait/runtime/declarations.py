"""What a state folder was made for, as text: the streams, tables and queries that a run computes.

Only what decides rows is written down, so that a run can go on after a change of anything else: not rates
(unless rows are generated) and sizes, which are for planning, nor aliases, which are not in plans. Secrets
stand there by their names. A plan is the canonical one that runs: Spark's state is of that plan and can serve
no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import unified_diff

from plait.catalog import OptionValue, Relation, Stream
from plait.deployment.fragments import Fragment, Result, sole_readers
from plait.plan.format import duration_text, format_plans
from plait.plan.nodes import sources_of
from plait.quantity_text import counted
from plait.workload import Query, Workload

SHOWN_LINES = 60

Texts = Mapping[str, str]

_KINDS = ("streams", "tables", "queries", "fragments", "read_by")


@dataclass(frozen=True)
class Declarations:
    """Texts by key, of what the fragments need; the ways of the fragments, by name; and which one
    reads a stream, if it alone does (`deployment.fragments.sole_readers`)."""

    streams: Texts
    tables: Texts
    queries: Texts
    fragments: Texts
    read_by: Texts

    def to_json(self) -> dict[str, dict[str, str]]:
        return {kind: dict(getattr(self, kind)) for kind in _KINDS}

    @classmethod
    def from_json(cls, document: Mapping[str, Mapping[str, str]]) -> Declarations:
        return cls(*({str(key): str(text) for key, text in document[kind].items()} for kind in _KINDS))


def declarations_of(workload: Workload, fragments: Iterable[Fragment]) -> Declarations:
    """What a run of these fragments rests on."""
    catalog = workload.catalog
    streams: set[str] = set()
    tables: set[str] = set()
    queries, ways = {}, {}
    fragments = [*fragments]
    for fragment in fragments:
        ways[fragment.name] = str(fragment.way)
        for result in fragment.results:
            read, joined = sources_of(result.plan)
            streams |= {name.lower() for name in read}
            tables |= {name.lower() for name in joined}
            queries[result.query.lower()] = _query_text(workload.query(result.query), result, fragment)
    return Declarations(
        {key: _relation_text(catalog.stream(key)) for key in sorted(streams)},
        {key: _relation_text(catalog.table(key)) for key in sorted(tables)},
        queries,
        ways,
        sole_readers(fragments),
    )


def difference(before: Declarations, after: Declarations) -> str:
    """What was added, removed and changed, with the changed lines; empty if nothing was."""
    parts: list[str] = []
    for kind, plural, texts in (
        ("stream", "streams", lambda each: each.streams),
        ("table", "tables", lambda each: each.tables),
        ("query", "queries", lambda each: each.queries),
    ):
        parts += _differences(kind, plural, texts, before, after)
    lines = [line for part in parts for line in part.splitlines()]
    more = len(lines) - SHOWN_LINES
    return "\n".join(lines[:SHOWN_LINES] + ([f"… {counted(more, 'more line')}"] if more > 0 else []))


def _differences(
    kind: str,
    plural: str,
    texts: Callable[[Declarations], Texts],
    before: Declarations,
    after: Declarations,
) -> Iterable[str]:
    old, new = texts(before), texts(after)
    for what, keys in (("added", new.keys() - old.keys()), ("removed", old.keys() - new.keys())):
        if keys:
            names = ", ".join(f"`{key}`" for key in sorted(keys))
            yield f"{counted(len(keys), kind, plural)} {what}: {names}"
    for key in sorted(old.keys() & new.keys()):
        if old[key] != new[key]:
            lines = unified_diff(old[key].splitlines(), new[key].splitlines(), n=0, lineterm="")
            changes = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
            yield "\n".join([f"{kind} `{key}` changed:", *(f"  {line}" for line in changes)])


def _relation_text(relation: Relation) -> str:
    facts: list[tuple[str, str]] = [
        ("column", f"{column.name} {column.storage or column.type}") for column in relation.columns
    ]
    facts.append(("connector", relation.connector))
    facts += _options(relation.options)
    if isinstance(relation, Stream):
        facts += [
            ("event time", relation.event_time),
            ("delay", duration_text(relation.delay_us)),
            ("start", relation.start),
        ]
        optional = {"idle_timeout": relation.idle_timeout_us, "max_future": relation.max_future_us}
        facts += [(name, duration_text(us)) for name, us in optional.items() if us is not None]
        facts += [("end", relation.end)] if relation.end is not None else []
        if relation.connector == "generator":  # another rate means other rows
            facts.append(("rate", f"{relation.rate_rows_per_s:g} rows/s"))
    return _lines(facts)


def _query_text(query: Query, result: Result, fragment: Fragment) -> str:
    sink = query.sink
    facts = [("column", name) for name in result.columns]
    facts.append(("results", sink.kind))
    facts += [(name, value) for name, value in (("to", sink.target), ("format", sink.format)) if value]
    facts += _options(sink.options)
    facts.append(("way", fragment.way))
    facts.append(("runs in", fragment.name))
    return _lines(facts) + format_plans({query.name: result.plan})


def _options(options: Mapping[str, OptionValue]) -> list[tuple[str, str]]:
    return [(f"option {name}", str(options[name])) for name in sorted(options)]


def _lines(facts: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{name}: {value}\n" for name, value in facts)
