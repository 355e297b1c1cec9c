"""What a state folder was made for, as text: the streams, tables and queries that a run computes.

Only what decides rows is compared, so that a run can go on after a change of anything else: not rates
(unless rows are generated) and sizes, which are for planning, nor aliases, which are not in plans. Secrets
stand there by their names. A plan is the canonical one that runs: Spark's state is of that plan and can serve
no other. What has changed is shown in the user's words, so the SQL is written down too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from difflib import unified_diff
from itertools import islice
from typing import Any

from plait.catalog import OptionValue, Relation, Stream
from plait.deployment.fragments import Fragment, Result, sole_readers
from plait.plan.format import duration_text, format_plans
from plait.plan.nodes import sources_of
from plait.quantity_text import counted
from plait.workload import Query, Workload

SHOWN_LINES = 60

Texts = Mapping[str, str]


@dataclass(frozen=True)
class QueryText:
    """What a query gives, and where to (`facts`); the `plan` that computes it; its name, and how it runs
    (`run`). The SQL means nothing to a state, and is kept to be shown."""

    facts: str
    plan: str
    run: str
    sql: str = field(compare=False)

    @property
    def meaning(self) -> tuple[str, str]:
        return self.facts, self.plan


@dataclass(frozen=True)
class Declarations:
    """Texts by key, of what the fragments need; the ways of the fragments, by name; and which one
    reads a stream, if it alone does (`deployment.fragments.sole_readers`)."""

    streams: Texts
    tables: Texts
    queries: Mapping[str, QueryText]
    fragments: Texts
    read_by: Texts

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "queries": {key: vars(query) for key, query in self.queries.items()}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Declarations:
        return cls(
            _texts(document["streams"]),
            _texts(document["tables"]),
            {str(key): QueryText(**_texts(query)) for key, query in document["queries"].items()},
            _texts(document["fragments"]),
            _texts(document["read_by"]),
        )


def _texts(document: Mapping[str, object]) -> dict[str, str]:
    return {str(key): str(text) for key, text in document.items()}


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
        {key: relation_text(catalog.stream(key)) for key in sorted(streams)},
        {key: relation_text(catalog.table(key)) for key in sorted(tables)},
        queries,
        ways,
        sole_readers(fragments),
    )


def difference(before: Declarations, after: Declarations) -> str:
    """What was added, removed, renamed and changed, with the changed lines; empty if nothing was."""
    parts = [
        *_differences("stream", before.streams, after.streams),
        *_differences("table", before.tables, after.tables),
        *_differences_of_queries(before.queries, after.queries),
    ]
    lines = [line for part in parts for line in part.splitlines()]
    more = len(lines) - SHOWN_LINES
    return "\n".join(lines[:SHOWN_LINES] + ([f"… {counted(more, 'more line')}"] if more > 0 else []))


def _differences(kind: str, before: Texts, after: Texts) -> Iterator[str]:
    yield from _come_and_gone(kind, f"{kind}s", before.keys(), after.keys())
    for key in sorted(before.keys() & after.keys()):
        if before[key] != after[key]:
            yield "\n".join([f"{kind} `{key}` changed:", *_changed_lines(before[key], after[key])])


def _differences_of_queries(before: Mapping[str, QueryText], after: Mapping[str, QueryText]) -> Iterator[str]:
    renamed = _renamed(before, after)
    for old, new in renamed.items():
        yield f"query `{old}` is called `{new}` now"
    kept = before.keys() - renamed.keys()
    yield from _come_and_gone("query", "queries", kept, after.keys() - {*renamed.values()})
    changed = [key for key in sorted(before.keys() & after.keys()) if before[key] != after[key]]
    otherwise = [key for key in changed if _runs_otherwise(before[key], after[key])]
    if otherwise:
        names = ", ".join(f"`{key}`" for key in otherwise)
        yield f"{counted(len(otherwise), 'query', 'queries')} would run in another way: {names}"
        yield "  are --engines or --planner others, or what is said of rates, sizes and sites?"
    for key in (key for key in changed if key not in otherwise):
        yield "\n".join([f"query `{key}` changed:", *_changes(before[key], after[key])])


def _runs_otherwise(before: QueryText, after: QueryText) -> bool:
    """Whether a query is the same, and only computed in another way."""
    return before.meaning == after.meaning and before.run.split("\n")[0] == after.run.split("\n")[0]


def _renamed(before: Mapping[str, QueryText], after: Mapping[str, QueryText]) -> dict[str, str]:
    """What queries that mean the same as one that is gone are called now, by the names of before. Equal ones
    are taken in their order."""
    come: dict[tuple[str, str], deque[str]] = {}
    for key, query in after.items():
        if key not in before:
            come.setdefault(query.meaning, deque()).append(key)
    renamed = {}
    for key, query in before.items():
        if key not in after and come.get(query.meaning):
            renamed[key] = come[query.meaning].popleft()
    return renamed


def _changes(before: QueryText, after: QueryText) -> Iterator[str]:
    yield from _changed_lines(before.facts, after.facts)
    yield from _changed_lines(before.run, after.run)
    if before.plan != after.plan:
        yield from _changed_lines(before.sql, after.sql) or ["  what it reads has changed"]


def _come_and_gone(kind: str, plural: str, before: Set[str], after: Set[str]) -> Iterator[str]:
    for what, keys in (("added", after - before), ("removed", before - after)):
        if keys:
            names = ", ".join(f"`{key}`" for key in sorted(keys))
            yield f"{counted(len(keys), kind, plural)} {what}: {names}"


def _changed_lines(before: str, after: str) -> list[str]:
    lines = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    # The first two name the texts; lines of SQL may begin as they do, where they are comments.
    return [f"  {line}" for line in islice(lines, 2, None) if not line.startswith("@@")]


def relation_text(relation: Relation) -> str:
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


def _query_text(query: Query, result: Result, fragment: Fragment) -> QueryText:
    sink, span = query.sink, query.span
    facts = [("column", name) for name in result.columns]
    facts.append(("results", sink.kind))
    facts += [(name, value) for name, value in (("to", sink.target), ("format", sink.format)) if value]
    facts += _options(sink.options)
    return QueryText(
        _lines(facts),
        format_plans({"": result.plan}),
        _lines([("name", query.name), ("way", fragment.way), ("runs in", fragment.name)]),
        "" if span is None else span.source.text[span.start : span.end],
    )


def _options(options: Mapping[str, OptionValue]) -> list[tuple[str, str]]:
    return [(f"option {name}", str(options[name])) for name in sorted(options)]


def _lines(facts: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{name}: {value}\n" for name, value in facts)
