"""From statements to the catalog: what is declared once all files are read.

Decides how names meet. Streams, tables and queries share one space of names, sites have their own. A link
works in both directions unless the way back is declared by itself. Statements may refer to what is
declared later or in another file, except DROP, which takes away something declared before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias, assert_never

from plait.catalog import (
    PASSED_ON,
    Catalog,
    ColumnDefinition,
    Keeping,
    Link,
    OptionValue,
    Secret,
    Sink,
    SinkKind,
    Site,
    Stream,
    Table,
    revealed,
)
from plait.errors import PlaitError, Span, UserError, closest
from plait.language.generated_streams import check_generated, generated_rate
from plait.language.options import Option
from plait.language.quantities import parse_limits
from plait.language.statements import (
    ColumnDeclaration,
    CreateLink,
    CreateQuery,
    CreateSite,
    CreateStream,
    CreateTable,
    Drop,
    Name,
    Statement,
    Unreadable,
)
from plait.workload import Workload

# Options of a stream or table that are not its connector's own.
_GENERAL_OPTIONS = frozenset(
    {"connector", "site", "row_bytes", "rows", "rate", "start", "end", "idle_timeout", "max_future"}
)

_Relation: TypeAlias = CreateStream | CreateTable | CreateQuery | Unreadable


@dataclass(frozen=True)
class QueryDeclaration:
    """A query that is still text, with the site and sink it names."""

    statement: CreateQuery
    site: str | None
    sink: Sink


@dataclass(frozen=True)
class Declarations:
    """`unreadable`: names whose declaration has an error that is reported already (lower case)."""

    catalog: Catalog
    queries: Mapping[str, QueryDeclaration]
    unreadable: frozenset[str]
    dropped: Mapping[str, Span]
    errors: tuple[PlaitError, ...]


def build_catalog(
    files: Iterable[tuple[Path, Iterable[Statement]]], known: Workload | None = None
) -> Declarations:
    """Collect the statements of all files, each with the folder that its relative paths start from.

    What is `known` was declared before: it can be used, and not be declared again or dropped.
    """
    builder = _Builder(known or Workload(Catalog()))
    for folder, statements in files:
        for statement in statements:
            builder.add(statement, folder)
    return builder.finish()


@dataclass
class _Builder:
    known: Workload
    relations: dict[str, tuple[_Relation, Path]] = field(default_factory=dict)
    sites: dict[str, CreateSite | Unreadable] = field(default_factory=dict)
    links: dict[tuple[str, str], CreateLink] = field(default_factory=dict)
    dropped: dict[str, Span] = field(default_factory=dict)
    errors: list[PlaitError] = field(default_factory=list)

    def add(self, statement: Statement, folder: Path) -> None:
        match statement:
            case CreateStream() | CreateTable() | CreateQuery():
                self._add_relation(statement, folder)
            case CreateSite():
                self._add_site(statement)
            case CreateLink():
                self._add_link(statement)
            case Drop():
                self._drop(statement)
            case Unreadable():
                self._add_unreadable(statement, folder)
            case _:
                assert_never(statement)

    def _add_relation(self, statement: CreateStream | CreateTable | CreateQuery, folder: Path) -> None:
        first = self.relations.get(statement.name.key)
        if first is not None:
            self.errors.append(_duplicate(statement.name, _kind(first[0]), first[0].name.span))
        elif (kind := _known_kind(self.known, statement.name.key)) is not None:
            self.errors.append(_known_already(statement.name, kind))
        else:
            self.relations[statement.name.key] = (statement, folder)

    def _add_site(self, statement: CreateSite) -> None:
        first = self.sites.get(statement.name.key)
        if first is not None:
            self.errors.append(_duplicate(statement.name, "site", first.name.span))
        elif statement.name.key in self.known.catalog.sites:
            self.errors.append(_known_already(statement.name, "site"))
        else:
            self.sites[statement.name.key] = statement

    def _add_link(self, statement: CreateLink) -> None:
        ends = (statement.source.key, statement.target.key)
        if ends[0] == ends[1]:
            self.errors.append(
                UserError("link", "a link joins two different sites", span=statement.target.span)
            )
        elif ends in self.links:
            self.errors.append(
                UserError(
                    "duplicate",
                    f"there is already a link from `{statement.source.text}` to `{statement.target.text}`",
                    detail=f"first declared at {self.links[ends].span}",
                    hint="keep one of them",
                    span=statement.span,
                )
            )
        else:
            self.links[ends] = statement

    def _add_unreadable(self, statement: Unreadable, folder: Path) -> None:
        if statement.kind == "site":
            self.sites.setdefault(statement.name.key, statement)
        elif statement.kind != "link":
            self.relations.setdefault(statement.name.key, (statement, folder))

    def _drop(self, drop: Drop) -> None:
        key = drop.name.key
        if key in self.known.queries or _known_kind(self.known, key) is not None:
            self.errors.append(
                UserError(
                    "drop-of-known",
                    f"`{drop.name.text}` was declared before, and cannot be dropped by what is added",
                    hint="`plait drop` drops queries of a running system",
                    span=drop.span,
                )
            )
            return
        match drop.kind:
            case "link":
                assert drop.target is not None
                found = self.links.pop((key, drop.target.key), None) is not None
            case "site":
                found = self.sites.pop(key, None) is not None
            case kind:
                declared = self.relations.get(key)
                found = declared is not None
                if declared is not None and _kind(declared[0]) != kind:
                    self.errors.append(_wrong_kind(drop, _kind(declared[0])))
                    return
                if found:
                    del self.relations[key]
                    self.dropped[key] = drop.span
        if not found and not drop.if_exists:
            self.errors.append(
                UserError(
                    "unknown-name",
                    f"there is no {drop.kind} `{drop.name.text}` to drop before this",
                    hint=closest(drop.name.text, self._names(drop.kind)) or "DROP … IF EXISTS does not mind",
                    span=drop.name.span,
                )
            )

    def _names(self, kind: str) -> list[str]:
        if kind == "site":
            return [site.name.text for site in self.sites.values()]
        return [relation.name.text for relation, _ in self.relations.values() if _kind(relation) == kind]

    def finish(self) -> Declarations:
        streams: dict[str, Stream] = {}
        tables: dict[str, Table] = {}
        queries: dict[str, QueryDeclaration] = {}
        unreadable: set[str] = set()
        for key, (relation, folder) in self.relations.items():
            match relation:
                case CreateStream():
                    streams[key] = self._stream(relation, folder)
                case CreateTable():
                    tables[key] = self._table(relation, folder)
                case CreateQuery():
                    queries[key] = self._query(relation, folder)
                case Unreadable():
                    unreadable.add(key)
                case _:
                    assert_never(relation)
        known = self.known.catalog
        streams, tables = {**known.streams, **streams}, {**known.tables, **tables}
        self._check_folders(streams, tables, queries)
        sites = {key: _site(site) for key, site in self.sites.items() if isinstance(site, CreateSite)}
        catalog = Catalog(
            MappingProxyType(streams),
            MappingProxyType(tables),
            MappingProxyType({**known.sites, **sites}),
            (*known.links, *self._links()),
        )
        return Declarations(
            catalog, queries, frozenset(unreadable), MappingProxyType(self.dropped), tuple(self.errors)
        )

    def _stream(self, statement: CreateStream, folder: Path) -> Stream:
        options = _by_key(statement.options)
        self.errors += check_generated(statement, options)
        rate = _fraction(options, "rate")
        return Stream(
            name=statement.name.text,
            columns=self._columns(statement.columns, options),
            connector=_text(options, "connector"),
            options=_connector_options(options, folder),
            site=self._home(options),
            row_bytes=_number(options, "row_bytes"),
            event_time=statement.watermark.column.text,
            delay_us=statement.watermark.delay_us,
            rate_rows_per_s=generated_rate(options) if rate is None else rate,
            start=_text(options, "start") or "earliest",
            end=_text(options, "end") or None,
            idle_timeout_us=_number(options, "idle_timeout"),
            max_future_us=_number(options, "max_future"),
            span=statement.span,
        )

    def _table(self, statement: CreateTable, folder: Path) -> Table:
        options = _by_key(statement.options)
        return Table(
            name=statement.name.text,
            columns=self._columns(statement.columns, options),
            connector=_text(options, "connector"),
            options=_connector_options(options, folder),
            site=self._home(options),
            row_bytes=_number(options, "row_bytes"),
            rows=_number(options, "rows"),
        )

    def _query(self, statement: CreateQuery, folder: Path) -> QueryDeclaration:
        site = None if statement.site is None else self._known_site(statement.site.text, statement.site.span)
        return QueryDeclaration(statement, site, _sink(statement, folder))

    def _check_folders(
        self,
        streams: Mapping[str, Stream],
        tables: Mapping[str, Table],
        queries: Mapping[str, QueryDeclaration],
    ) -> None:
        """The files of a query are all that is in their folder: readers take them by that. Those below the
        folder of a stream would be taken for files of the stream."""
        holders = {
            revealed(relation.options["path"]): f"holds the data of {kind} `{relation.name}`"
            for kind, relations in (("stream", streams), ("table", tables))
            for relation in relations.values()
            if "path" in relation.options
        }
        sources = {
            revealed(stream.options["path"]): f"is inside the folder that stream `{stream.name}` is read from"
            for stream in streams.values()
            if stream.connector == "files" and "path" in stream.options
        }
        for known in self.known.queries.values():
            if known.sink.target is not None:
                holders.setdefault(known.sink.target, f"takes the results of query `{known.name}`")
        for query in queries.values():
            folder, target = query.statement.folder, query.sink.target
            if folder is None or target is None:
                continue
            around = (sources[parent] for parent in map(str, Path(target).parents) if parent in sources)
            obstacle = holders.get(target) or next(around, None)
            if obstacle is not None:
                self.errors.append(
                    UserError(
                        "sink-path",
                        f"this folder {obstacle}",
                        hint="give the results a folder of their own",
                        span=folder.span,
                    )
                )
            holders.setdefault(target, f"takes the results of query `{query.statement.name.text}`")

    def _links(self) -> tuple[Link, ...]:
        links = []
        for ends, statement in self.links.items():
            source = self._known_site(statement.source.text, statement.source.span)
            target = self._known_site(statement.target.text, statement.target.span)
            if source is not None and target is not None:
                options = _by_key(statement.options)
                bandwidth, latency_us = _fraction(options, "bandwidth"), _number(options, "latency")
                links.append(Link(source, target, bandwidth, latency_us))
                if (ends[1], ends[0]) not in self.links:
                    links.append(Link(target, source, bandwidth, latency_us))
        return tuple(links)

    def _columns(
        self, declared: Sequence[ColumnDeclaration], options: Mapping[str, Option]
    ) -> tuple[ColumnDefinition, ...]:
        for key, option in options.items():
            prefix, _, name = key.partition(".")
            if prefix == "distinct" and all(name != column.name.key for column in declared):
                self.errors.append(
                    UserError(
                        "unknown-column",
                        f"there is no column `{name}`",
                        hint=closest(name, [column.name.text for column in declared]),
                        span=option.key_span,
                    )
                )
        return tuple(
            ColumnDefinition(
                column.name.text, column.type, _number(options, f"distinct.{column.name.key}"), column.storage
            )
            for column in declared
        )

    def _home(self, options: Mapping[str, Option]) -> str | None:
        option = options.get("site")
        return None if option is None else self._known_site(str(option.value), option.span)

    def _known_site(self, name: str, span: Span) -> str | None:
        """The site's name as declared; None, with an error, if there is no such site."""
        site = self.sites.get(name.lower())
        if site is not None:
            return site.name.text
        if name.lower() in self.known.catalog.sites:
            return self.known.catalog.sites[name.lower()].name
        self.errors.append(
            UserError(
                "unknown-site",
                f"there is no site `{name}`",
                hint=closest(name, self._names("site")) or f"declare it: CREATE SITE {name};",
                span=span,
            )
        )
        return None


def _kind(relation: _Relation) -> str:
    match relation:
        case CreateStream():
            return "stream"
        case CreateTable():
            return "table"
        case CreateQuery():
            return "query"
        case Unreadable(kind):
            return kind


def _known_kind(known: Workload, key: str) -> str | None:
    """What is known by a name."""
    relations = (("stream", known.catalog.streams), ("table", known.catalog.tables), ("query", known.queries))
    return next((kind for kind, named in relations if key in named), None)


def _known_already(name: Name, kind: str) -> PlaitError:
    hint = "take another name" + (f", or drop it first: plait drop {name.text}" if kind == "query" else "")
    return UserError(
        "duplicate", f"there is already a {kind} `{name.text}` in the system", hint=hint, span=name.span
    )


def _duplicate(name: Name, kind: str, first: Span) -> PlaitError:
    return UserError(
        "duplicate",
        f"there is already a {kind} `{name.text}`",
        detail=f"first declared at {first}",
        hint="take another name, or DROP the first one before",
        span=name.span,
    )


def _wrong_kind(drop: Drop, kind: str) -> PlaitError:
    statement = "CONTINUOUS QUERY" if kind == "query" else kind.upper()
    return UserError(
        "wrong-kind",
        f"`{drop.name.text}` is a {kind}, not a {drop.kind}",
        hint=f"DROP {statement} {drop.name.text}",
        span=drop.name.span,
    )


def _site(statement: CreateSite) -> Site:
    options = _by_key(statement.options)
    both_ways = _fraction(options, "bandwidth")
    return Site(
        statement.name.text,
        cores=_fraction(options, "cores"),
        memory_bytes=_number(options, "memory"),
        in_bytes_per_s=both_ways or _fraction(options, "in_bandwidth"),
        out_bytes_per_s=both_ways or _fraction(options, "out_bandwidth"),
        database=_text(options, "database") or None,
    )


def _sink(statement: CreateQuery, folder: Path) -> Sink:
    options = _by_key(statement.options)
    path = _text(options, "path") if statement.folder is None else statement.folder.path
    return Sink(
        SinkKind(_text(options, "sink") or SinkKind.PARQUET),
        _located(path, folder) if path else None,
        _text(options, "format") or None,
        MappingProxyType(
            {
                key.removeprefix(PASSED_ON): option.value
                for key, option in options.items()
                if key.startswith(PASSED_ON)
            }
        ),
        _keeping(options),
    )


def _keeping(options: Mapping[str, Option]) -> Keeping:
    limits = parse_limits(_text(options, "retain")) if "retain" in options else (None, None)
    return Keeping(*limits, _number(options, "compact"))


def _connector_options(options: Mapping[str, Option], folder: Path) -> Mapping[str, OptionValue]:
    own = {
        key: option.value
        for key, option in options.items()
        if key not in _GENERAL_OPTIONS and not key.startswith("distinct.")
    }
    match own.get("path"):
        case str(path):
            own["path"] = _located(path, folder)
        case Secret() as secret:
            own["path"] = Secret(secret.template, _located(secret.reveal(), folder))
    return MappingProxyType(own)


def _located(path: str, folder: Path) -> str:
    """Absolute, and without the `..` that the folder's own name may hold. An address stays as it is."""
    return path if "://" in path else os.path.normpath(folder.absolute() / path)


def _by_key(options: Iterable[Option]) -> Mapping[str, Option]:
    return {option.key: option for option in options}


def _text(options: Mapping[str, Option], key: str) -> str:
    return str(options[key].value) if key in options else ""


def _number(options: Mapping[str, Option], key: str) -> int | None:
    value = options[key].value if key in options else None
    return value if isinstance(value, int) else None


def _fraction(options: Mapping[str, Option], key: str) -> float | None:
    value = options[key].value if key in options else None
    return float(value) if isinstance(value, int | float) else None
