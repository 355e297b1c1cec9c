"""A SELECT block above its FROM: WHERE, GROUP BY, HAVING, SELECT, ORDER BY … LIMIT.

Decides what names mean in each clause, as Spark does: WHERE and SELECT see the columns of FROM; GROUP BY
sees them first and then the aliases of SELECT; ORDER BY the other way round; HAVING sees both, and
refuses a name that would mean two things. A select list does not see its own aliases.

In a block with aggregates everything above the Aggregate is made of its keys and aggregates. Expressions
are bound over the columns of FROM with the aggregates behind them, then every part that equals a key
becomes that key; a column that is left over was not grouped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from plait.errors import PlaitError, Source, UserError
from plait.expressions.nodes import Call, Column, Expression, columns_of, conjunction
from plait.language.attempts import Attempts, Reported
from plait.language.bind_expressions import AggregateList, ExpressionBinder
from plait.language.bind_joins import BoundFrom
from plait.language.bind_windows import is_window_call
from plait.language.outputs import (
    Limit,
    OutputColumn,
    check_column_type,
    limit_count,
    name_outputs,
    ordinal,
    project,
    written_name,
)
from plait.language.scope import EDGES, WINDOW_FIELDS, BoundRelation, VisibleColumn
from plait.language.spans import span_of
from plait.plan.nodes import Aggregate, Filter, SortKey


@dataclass(frozen=True)
class SelectItem:
    """An item of the select list with stars expanded: `visible` is what a star stood for."""

    node: exp.Expr
    alias: str | None
    visible: VisibleColumn | None = None


class Block:
    """Binds one block over its FROM. `aggregates` is None in a block without them."""

    def __init__(
        self,
        select: exp.Select,
        bound_from: BoundFrom,
        aggregated: bool,
        source: Source,
        errors: list[PlaitError],
    ) -> None:
        self._select = select
        self._from = bound_from
        self._scope = bound_from.scope
        self._source = source
        self._errors = errors
        self._attempts = Attempts(errors)
        self._aggregates = AggregateList(self._scope.width) if aggregated else None
        self._keys: dict[Expression, int] = {}
        self._outputs: list[OutputColumn] = []

    def bind(self) -> BoundRelation:
        select, attempts = self._select, self._attempts
        conditions = Attempts(self._errors)
        where = select.args.get("where")
        kept = [] if where is None else self._where(where.this, conditions)
        items = attempts.run(self._items) or []
        self._bind_keys(items)
        outputs = [attempts.run(self._output, item) for item in items]
        attempts.check()  # what follows would complain about what is missing
        self._outputs = [output for output in outputs if output is not None]
        names = attempts.run(name_outputs, self._outputs, self._source)
        expressions = [attempts.run(self._grouped, o.expression, o.node) for o in self._outputs]
        having = select.args.get("having")
        kept_groups = None if having is None else attempts.run(self._having, having.this)
        is_limited = select.args.get("limit") and select.args.get("order")
        limit = attempts.run(self._limit) if is_limited else None
        attempts.check()
        conditions.check()
        if self._from.plan is None:
            raise Reported
        plan = Filter(self._from.plan, conjunction(kept)) if where is not None else self._from.plan
        if self._aggregates is not None:
            plan = Aggregate(plan, tuple(self._keys), self._aggregates.calls)
        if kept_groups is not None:
            plan = Filter(plan, kept_groups)
        assert names is not None
        selected = [expression for expression in expressions if expression is not None]
        return BoundRelation(project(plan, selected, limit), names, self._from.range_us)

    # Names

    def _input(self, node: exp.Column) -> Expression:
        """WHERE and SELECT: columns of FROM."""
        try:
            return self._scope.resolve(node, self._source)
        except UserError as error:
            if error.code == "unknown-column" and not node.table and self._has_alias(node.name):
                error.hint = (
                    f"`{node.name}` is an alias of this SELECT, which its own list and WHERE do not see:\n"
                    "repeat the expression, or select it in a subquery"
                )
            raise

    def _has_alias(self, name: str) -> bool:
        return any(
            isinstance(item, exp.Alias) and item.alias.lower() == name.lower()
            for item in self._select.expressions
        )

    def _output_named(self, node: exp.Column) -> Expression | None:
        if node.table:
            return None
        found = [o for o in self._outputs if o.name.lower() == node.name.lower()]
        return found[0].expression if len(found) == 1 else None

    def _in_having(self, node: exp.Column) -> Expression:
        output = self._output_named(node)
        if output is None:
            return self._scope.resolve(node, self._source)
        column = None if node.table else self._scope.find(node.name)
        if column in self._keys and column != output:
            raise UserError(
                "ambiguous-column",
                f"`{node.name}` is a column of FROM and another one of SELECT",
                hint="qualify the column, or give the selected one another alias",
                span=span_of(node, self._source),
            )
        return output

    def _in_order(self, node: exp.Column) -> Expression:
        output = self._output_named(node)
        return self._scope.resolve(node, self._source) if output is None else output

    # Clauses

    def _where(self, node: exp.Expr, conditions: Attempts) -> list[Expression]:
        return ExpressionBinder(self._input, self._source, "WHERE").conditions(node, conditions)

    def _items(self) -> list[SelectItem]:
        items: list[SelectItem] = []
        for node in self._select.expressions:
            if isinstance(node, exp.Star):
                items += [SelectItem(node, None, column) for column in self._scope.visible()]
            elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
                items += self._qualified_star(node)
            elif isinstance(node, exp.Alias):
                items.append(SelectItem(node.this, node.alias))
            else:
                items.append(SelectItem(node, None))
        return items

    def _qualified_star(self, node: exp.Column) -> list[SelectItem]:
        item = self._scope.item(node.table)
        if item is None:
            raise self._scope.unknown_alias(node.table, node, self._source)
        return [SelectItem(node, None, column) for column in self._scope.visible(item)]

    def _output(self, item: SelectItem) -> OutputColumn:
        if item.visible is not None:
            return OutputColumn(item.visible.name, item.visible.expression, item.node, item.visible.origin)
        binder = ExpressionBinder(self._input, self._source, "SELECT", self._aggregates)
        expression = binder.bind(item.node)
        self._check_output(expression, item.node)
        if item.alias is not None:
            return OutputColumn(item.alias, expression, item.node)
        origin = self._origin(expression) if isinstance(item.node, exp.Column) else None
        return OutputColumn(written_name(item.node), expression, item.node, origin)

    def _check_output(self, expression: Expression, node: exp.Expr) -> None:
        check_column_type(expression, node, self._source)
        if isinstance(node.unnest(), exp.Null):
            raise UserError(
                "untyped-null",
                "this NULL has no type",
                hint="say which: CAST(NULL AS STRING)",
                span=span_of(node, self._source),
            )

    def _origin(self, expression: Expression) -> str | None:
        if not isinstance(expression, Column):
            return None
        below = [item for item in self._scope.items if item.offset <= expression.index]
        return below[-1].name if below else None

    def _having(self, node: exp.Expr) -> Expression:
        binder = ExpressionBinder(self._in_having, self._source, "HAVING", self._aggregates, self._input)
        return self._grouped(binder.condition(node), node)

    # Groups

    def _bind_keys(self, items: Sequence[SelectItem]) -> None:
        group = self._select.args.get("group")
        for node in group.expressions if group is not None else ():
            if not is_window_call(node):
                self._attempts.run(self._bind_key, node, items)

    def _bind_key(self, node: exp.Expr, items: Sequence[SelectItem]) -> None:
        index = ordinal(node, len(items), "GROUP BY", self._source)
        item = self._aliased(node, items) if index is None else items[index]
        if item is not None and item.visible is not None:
            key: Expression = item.visible.expression
        else:
            binder = ExpressionBinder(self._input, self._source, "GROUP BY")
            key = binder.bind(node if item is None else item.node)
        check_column_type(key, node, self._source)
        # The edges of the window and constants are the same for all rows of a tick: they group nothing.
        if columns_of(key):
            self._keys.setdefault(key, len(self._keys))

    def _aliased(self, node: exp.Expr, items: Sequence[SelectItem]) -> SelectItem | None:
        """The select item that a GROUP BY name means, unless it is a column of FROM."""
        if not isinstance(node, exp.Column) or node.table or self._scope.find(node.name) is not None:
            return None
        found = [item for item in items if item.alias is not None and item.alias.lower() == node.name.lower()]
        return found[0] if len(found) == 1 else None

    def _grouped(self, expression: Expression, node: exp.Expr) -> Expression:
        """An expression over FROM and aggregates as one over keys and aggregates."""
        if self._aggregates is None:
            return expression
        if expression in self._keys:
            return Column(self._keys[expression], expression.type)
        match expression:
            case Column(index, type_) if index >= self._scope.width:
                return Column(index - self._scope.width + len(self._keys), type_)
            case Column():
                raise self._ungrouped(expression, node)
            case Call(function, arguments, to):
                return Call(function, tuple(self._grouped(a, node) for a in arguments), to)
            case _:
                return expression

    def _ungrouped(self, column: Column, node: exp.Expr) -> PlaitError:
        """Point at the column inside the expression that is not grouped."""
        written = node
        for part in node.find_all(exp.Column):
            if not isinstance(part.this, exp.Star) and self._in_order(part) == column:
                written = part
                break
        item = [item for item in self._scope.items if item.offset <= column.index][-1]
        name = item.relation.columns[column.index - item.offset]
        hint = f"add it to GROUP BY, or take one value of the group: max({name})"
        if name.lower() in EDGES:
            field = next(field for field, edge in WINDOW_FIELDS.items() if edge == name.lower())
            hint = (
                f"this is the column `{name}` of {f'`{item.name}`' if item.name else 'the subquery'};\n"
                f"the window of this block is `window.{field}`"
            )
        return UserError(
            "not-grouped",
            f"`{name}` is neither in GROUP BY nor inside an aggregate",
            hint=hint,
            span=span_of(written, self._source),
        )

    # Order

    def _limit(self) -> Limit:
        order = tuple(self._sort_key(ordered) for ordered in self._select.args["order"].expressions)
        return Limit(order, limit_count(self._select.args["limit"], self._source))

    def _sort_key(self, ordered: exp.Ordered) -> SortKey:
        node = ordered.this
        index = ordinal(node, len(self._outputs), "ORDER BY", self._source)
        if index is None:
            binder = ExpressionBinder(self._in_order, self._source, "ORDER BY", self._aggregates, self._input)
            expression = binder.bind(node)
        else:
            expression = self._outputs[index].expression
        check_column_type(expression, node, self._source)
        return SortKey(
            self._grouped(expression, node), bool(ordered.args.get("desc")), bool(ordered.args["nulls_first"])
        )
