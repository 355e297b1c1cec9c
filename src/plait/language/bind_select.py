"""A query's text as a plan: SELECT blocks, WITH, UNION ALL and subqueries, straight from the text.

Nothing is rewritten here: that is for `plait.rewrite`. All errors of a query are found in one go, as far
as one does not stand in the way of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from plait.errors import PlaitError, Source, UnsupportedError, UserError
from plait.expressions import coercion
from plait.expressions.functions import FunctionTypeError
from plait.expressions.nodes import Column, Expression
from plait.language.attempts import Attempts
from plait.language.bind_block import Block
from plait.language.bind_expressions import ExpressionBinder, contains_aggregate
from plait.language.bind_items import CommonTables, ItemBinder, Relations
from plait.language.bind_joins import JoinBinder
from plait.language.bind_windows import group_window, is_window_call, place_windows, provisional
from plait.language.outputs import (
    Limit,
    check_column_type,
    check_order_and_limit,
    limit_count,
    ordinal,
    project,
)
from plait.language.scope import BoundRelation, Scope
from plait.language.spans import span_of
from plait.plan.nodes import Node, Project, SortKey, Static, Union

# Plans are walked recursively, and one that is read twice counts twice when it is written out.
DEEPEST_NESTING = 32
MOST_READS = 1_000
# Orders of joins are searched among all their inputs.
MOST_JOINED = 64


class QueryBinder:
    """Binds the text of one query. Errors go to `errors`; `Reported` says that there were some."""

    def __init__(self, relations: Relations, source: Source, errors: list[PlaitError]) -> None:
        self._source = source
        self._errors = errors
        self._items = ItemBinder(relations, self.bind, source, errors)

    def bind(self, query: exp.Query, ctes: CommonTables) -> BoundRelation:
        attempts = Attempts(self._errors)
        ctes = self._with(query, ctes, attempts)
        match query:
            case exp.Subquery():
                relation = attempts.run(self.bind, query.this, ctes)
            case exp.Union():
                relation = attempts.run(self._union, query, ctes)
            case exp.Select():
                relation = attempts.run(self._select, query, ctes)
            case _:
                raise UnsupportedError(
                    "unsupported-syntax",
                    "Plait does not support this kind of query",
                    hint="a query is a SELECT, or several with UNION ALL between them",
                    span=span_of(query, self._source),
                )
        attempts.check()
        assert relation is not None
        return relation

    def _with(self, query: exp.Query, ctes: CommonTables, attempts: Attempts) -> CommonTables:
        """Bind the queries of WITH. Each sees those before it; a name hides one of the catalog."""
        clause = query.args.get("with_")
        if clause is None:
            return ctes
        known = dict(ctes)
        own: set[str] = set()
        for cte in clause.expressions:
            name = cte.alias.lower()
            if name in own:
                attempts.record(
                    UserError(
                        "duplicate",
                        f"WITH names `{cte.alias}` twice",
                        hint="take another name",
                        span=span_of(cte.args["alias"], self._source),
                    )
                )
                continue
            own.add(name)
            known[name] = attempts.run(self._common_table, cte, known)
        return known

    def _common_table(self, cte: exp.CTE, ctes: CommonTables) -> BoundRelation:
        relation = self.bind(cte.this, ctes)
        alias = cte.args["alias"]
        names = tuple(column.name for column in alias.columns)
        return self._items.renamed(relation, names, alias) if names else relation

    # SELECT

    def _select(self, select: exp.Select, ctes: CommonTables) -> BoundRelation:
        joined = 1 + len(select.args.get("joins") or ())
        if joined > MOST_JOINED:
            raise UserError(
                "too-large",
                f"this joins {joined:,} streams and tables; {MOST_JOINED} is the limit",
                hint="join some of them in a query of its own, and read that by its name and a window",
                span=span_of(select.args["from_"], self._source),
            )
        items = self._items.items(select, ctes)
        depth, reads = self._extent([item.relation for item in items], select)
        group = select.args.get("group")
        keys = group.expressions if group is not None else []
        aggregated = bool(keys) or _has_aggregates(select)
        limited = select.args.get("limit") is not None
        ticks = aggregated or limited or any(item.ticks_by_itself for item in items)
        attempts = Attempts(self._errors)
        attempts.run(check_order_and_limit, select, self._source)
        attempts.run(self._check_having, select, aggregated)
        if ticks and all(item.is_static for item in items):
            raise UnsupportedError(
                "no-stream",
                "this aggregates or limits tables only",
                hint="a continuous query reads a stream; prepare the table outside of Plait",
                span=span_of(select.args["from_"], self._source),
            )
        calls = [key for key in keys if is_window_call(key)]
        windowed = attempts.run(group_window, calls, items, self._source) if calls else items
        if windowed is None:
            relations, are_sound = [provisional(item, ticks) for item in items], False
        else:
            relations, are_sound = place_windows(windowed, ticks, self._source, self._errors)
        joins = select.args.get("joins") or []
        bound_from = JoinBinder(self._source, self._errors).bind(joins, items, relations, are_sound)
        block = Block(select, bound_from, aggregated, self._source, self._errors)
        relation = attempts.run(block.bind)
        attempts.check()
        assert relation is not None
        return replace(relation, depth=depth, reads=reads)

    def _extent(self, relations: Sequence[BoundRelation], node: exp.Expr) -> tuple[int, int]:
        """The depth of a block over these relations, and how many sources it reads when written out."""
        depth = 1 + max(relation.depth for relation in relations)
        reads = sum(relation.reads for relation in relations)
        if depth > DEEPEST_NESTING:
            message = f"queries and subqueries are nested more than {DEEPEST_NESTING} levels deep here"
        elif reads > MOST_READS:
            message = (
                f"with all that it reads in place, this reads {reads:,} sources; {MOST_READS:,} is the limit"
            )
        else:
            return depth, reads
        raise UserError("too-large", message, hint="split it", span=span_of(node, self._source))

    def _check_having(self, select: exp.Select, aggregated: bool) -> None:
        having = select.args.get("having")
        if having is not None and not aggregated:
            raise UserError(
                "having",
                "HAVING chooses among groups, and this block has none",
                hint="use WHERE, or add GROUP BY",
                span=span_of(having, self._source),
            )

    # UNION ALL

    def _union(self, union: exp.Union, ctes: CommonTables) -> BoundRelation:
        check_order_and_limit(union, self._source)
        attempts = Attempts(self._errors)
        nodes = _branches(union)
        bound = [attempts.run(self.bind, node, ctes) for node in nodes]
        attempts.check()
        branches = [relation for relation in bound if relation is not None]
        for node, branch in zip(nodes, branches, strict=True):
            self._check_branch(node, branch, branches[0])
        plans = self._unified(nodes, branches)
        ranges_us = {branch.range_us for branch in branches}
        range_us = ranges_us.pop() if len(ranges_us) == 1 else None
        depth, reads = self._extent(branches, union)
        relation = BoundRelation(Union(tuple(plans)), branches[0].columns, range_us, depth, reads)
        return self._limited(union, relation) if union.args.get("limit") else relation

    def _check_branch(self, node: exp.Expr, branch: BoundRelation, first: BoundRelation) -> None:
        if len(branch.columns) != len(first.columns):
            raise UserError(
                "union-columns",
                f"this part of the UNION has {len(branch.columns)} columns, the first {len(first.columns)}",
                span=span_of(node, self._source),
            )
        if isinstance(branch.plan.timing, Static):
            raise UnsupportedError(
                "no-stream",
                "this part of the UNION reads tables only",
                hint="a union is of streams; join the table with one",
                span=span_of(node, self._source),
            )

    def _unified(self, nodes: Sequence[exp.Expr], branches: Sequence[BoundRelation]) -> list[Node]:
        """The branches with equal types, by implicit casts."""
        types = []
        for index, name in enumerate(branches[0].columns):
            try:
                types.append(coercion.common_type([branch.plan.types[index] for branch in branches]))
            except FunctionTypeError:
                kinds = ", ".join(str(branch.plan.types[index]) for branch in branches)
                raise UserError(
                    "union-types",
                    f"column `{name}` has types without a common one in this UNION: {kinds}",
                    hint="CAST it to the same type in every part",
                    span=span_of(nodes[0], self._source),
                ) from None
        plans: list[Node] = []
        for branch in branches:
            columns = [Column(index, type_) for index, type_ in enumerate(branch.plan.types)]
            cast = [coercion.coerce(column, to) for column, to in zip(columns, types, strict=True)]
            plans.append(branch.plan if cast == columns else Project(branch.plan, tuple(cast)))
        return plans

    def _limited(self, union: exp.Union, relation: BoundRelation) -> BoundRelation:
        if not relation.ticks:
            raise UnsupportedError(
                "limit-without-ticks",
                "ORDER BY … LIMIT needs ticks, and the parts of this UNION do not tick together",
                hint="put a window on it: SELECT * FROM (… UNION ALL …) x [RANGE …] ORDER BY … LIMIT …",
                span=span_of(union.args["order"], self._source),
            )
        scope = Scope(()).with_item(None, relation)
        binder = ExpressionBinder(lambda node: scope.resolve(node, self._source), self._source, "ORDER BY")
        columns: list[Expression] = [column.expression for column in scope.visible()]
        keys = []
        for ordered in union.args["order"].expressions:
            index = ordinal(ordered.this, len(columns), "ORDER BY", self._source)
            expression = binder.bind(ordered.this) if index is None else columns[index]
            check_column_type(expression, ordered.this, self._source)
            keys.append(
                SortKey(expression, bool(ordered.args.get("desc")), bool(ordered.args["nulls_first"]))
            )
        limit = Limit(tuple(keys), limit_count(union.args["limit"], self._source))
        return replace(relation, plan=project(relation.plan, columns, limit))


def _has_aggregates(select: exp.Select) -> bool:
    parts = [*select.expressions, select.args.get("having"), select.args.get("order")]
    return any(contains_aggregate(part) for part in parts if part is not None)


def _branches(union: exp.Union) -> list[exp.Query]:
    """The parts of a chain of UNION ALL, from left to right, whatever its length."""
    parts: list[exp.Query] = []
    stack: list[exp.Query] = [union]
    while stack:
        node = stack.pop()
        is_plain = not any(node.args.get(part) for part in ("order", "limit", "with_"))
        if isinstance(node, exp.Union) and (node is union or is_plain):
            stack += [node.expression, node.this]
        else:
            parts.append(node)
    return parts
