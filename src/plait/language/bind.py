"""All queries of a workload, bound against the catalog and each other.

A query that reads another one by its name gets that one's plan in place; queries that read each other in
a circle are an error, and so is a query that reads a broken one, but only the broken one is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

from sqlglot import exp

from plait.catalog import Relation
from plait.errors import InternalError, PlaitError, Source, UserError, closest
from plait.language.attempts import Attempts, Reported
from plait.language.bind_items import NamedRelation, Origin
from plait.language.bind_select import DEEPEST_NESTING, QueryBinder
from plait.language.catalog_builder import Declarations
from plait.language.scope import BoundRelation
from plait.language.spans import span_of
from plait.language.syntax import check_syntax
from plait.plan.nodes import Field, IllegalPlanError, Static, StreamScan, TableScan
from plait.workload import Query

# After so many errors, the queries that are left are not looked at.
MOST_ERRORS = 2_000


def bind_queries(
    declarations: Declarations, known: Mapping[str, Query] = MappingProxyType({})
) -> tuple[Mapping[str, Query], list[PlaitError]]:
    """Every query that can be bound, in the order of declaration, and the errors of the others. They may read
    queries that are `known`."""
    return _QueriesBinder(declarations, known).bind_all()


class _QueriesBinder:
    """Implements `bind_items.Relations`: what the names of the catalog and of queries stand for."""

    def __init__(self, declarations: Declarations, known: Mapping[str, Query]) -> None:
        self._declarations = declarations
        self._known_queries = known
        self._reads: dict[str, dict[str, None]] = {}  # the queries that each reads
        self._errors: list[PlaitError] = []
        self._relations: dict[str, NamedRelation] = {}
        self._bound: dict[str, BoundRelation | None] = {}
        self._open: list[str] = []  # queries being bound, each read by the one before it

    def bind_all(self) -> tuple[Mapping[str, Query], list[PlaitError]]:
        queries: dict[str, Query] = {}
        for key, declaration in self._declarations.queries.items():
            if len(self._errors) > MOST_ERRORS:
                break  # they will not be shown, and looking for close names takes its time for each
            relation = self._query(key)
            if relation is not None:
                statement = declaration.statement
                queries[key] = Query(
                    statement.name.text,
                    relation.plan,
                    relation.columns,
                    declaration.site,
                    declaration.sink,
                    statement.span,
                    tuple(self._reads.get(key, ())),
                )
        return MappingProxyType(queries), self._errors

    def read(self, node: exp.Table, source: Source) -> NamedRelation:
        key = node.name.lower()
        if key in self._declarations.queries:
            self._check_chain(key, node, source)
            relation = self._query(key)
            if relation is None:
                raise Reported
            self._note_read(self._declarations.queries[key].statement.name.text)
            return NamedRelation(Origin.QUERY, relation)
        if key in self._known_queries:
            query = self._known_queries[key]
            self._note_read(query.name)
            return NamedRelation(Origin.QUERY, BoundRelation(query.plan, query.columns))
        if key not in self._relations:
            self._relations[key] = self._scan(key, node, source)
        return self._relations[key]

    def _note_read(self, query: str) -> None:
        self._reads.setdefault(self._open[-1], {})[query] = None

    def _scan(self, key: str, node: exp.Table, source: Source) -> NamedRelation:
        catalog = self._declarations.catalog
        if key in catalog.streams:
            stream = catalog.streams[key]
            scan = StreamScan(stream.name, _fields(stream))
            relation = BoundRelation(scan, _names(stream))
            return NamedRelation(Origin.STREAM, relation, stream.event_time)
        if key in catalog.tables:
            table = catalog.tables[key]
            return NamedRelation(
                Origin.TABLE, BoundRelation(TableScan(table.name, _fields(table)), _names(table))
            )
        if key in self._declarations.unreadable:
            raise Reported
        raise self._unknown(key, node, source)

    def _unknown(self, key: str, node: exp.Table, source: Source) -> PlaitError:
        dropped = self._declarations.dropped.get(key)
        hint = closest(node.name, self._known)
        if dropped is None and not hint.startswith("did"):
            hint += "\nif another file declares it, name that file too"
        return UserError(
            "unknown-relation",
            f"there is no stream, table or query `{node.name}`",
            detail="" if dropped is None else f"it was dropped at {dropped}",
            hint=hint.strip(),
            span=span_of(node.this, source),
        )

    @cached_property
    def _known(self) -> tuple[str, ...]:
        """The names of all that can be read."""
        catalog, queries = self._declarations.catalog, self._declarations.queries
        return (
            *(stream.name for stream in catalog.streams.values()),
            *(table.name for table in catalog.tables.values()),
            *(query.statement.name.text for query in queries.values()),
            *(query.name for query in self._known_queries.values()),
        )

    def _check_chain(self, key: str, node: exp.Table, source: Source) -> None:
        if key in self._open:
            names = [
                self._declarations.queries[name].statement.name.text
                for name in (*self._open[self._open.index(key) :], key)
            ]
            raise UserError(
                "cycle",
                "these queries read each other in a circle" if len(names) > 2 else "this query reads itself",
                detail=" reads ".join(f"`{name}`" for name in names),
                hint="a query's result cannot depend on itself",
                span=span_of(node.this, source),
            )
        if len(self._open) >= DEEPEST_NESTING and key not in self._bound:
            raise UserError(
                "too-large",
                f"queries read each other more than {DEEPEST_NESTING} levels deep here",
                hint="split the chain: write a result to a folder and declare it as a stream",
                span=span_of(node.this, source),
            )

    def _query(self, key: str) -> BoundRelation | None:
        """The query's plan and columns; None if it has errors, which are then recorded."""
        if key not in self._bound:
            self._open.append(key)
            self._bound[key] = Attempts(self._errors).run(self._bind, key)
            self._open.pop()
        return self._bound[key]

    def _bind(self, key: str) -> BoundRelation:
        statement = self._declarations.queries[key].statement
        source = statement.source
        refused = list(check_syntax(statement.select, source))
        if refused:
            self._errors += refused
            raise Reported
        try:
            relation = QueryBinder(self, source, self._errors).bind(statement.select, {})
        except IllegalPlanError as error:
            raise InternalError(
                "illegal-plan",
                f"the query `{statement.name.text}` was bound to a plan without meaning: {error}",
                hint="this is a bug in Plait: please report it with the query",
                span=statement.name.span,
            ) from error
        if isinstance(relation.plan.timing, Static):
            raise UserError(
                "no-stream",
                f"`{statement.name.text}` reads tables only and would never give a row",
                hint="a continuous query reads at least one stream",
                span=statement.name.span,
            )
        return relation


def _fields(relation: Relation) -> tuple[Field, ...]:
    return tuple(Field(column.name, column.type) for column in relation.columns)


def _names(relation: Relation) -> tuple[str, ...]:
    return tuple(column.name for column in relation.columns)
