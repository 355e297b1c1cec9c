"""How the items of a FROM are joined.

Comma lists and inner joins become one join of many inputs; outer joins nest from left to right. A comma
binds like any join, as in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from plait.errors import PlaitError, Source, UnsupportedError, UserError
from plait.expressions import coercion
from plait.expressions.functions import FunctionTypeError
from plait.expressions.nodes import TRUE, Expression, conjunction, conjuncts
from plait.language.attempts import Attempts
from plait.language.bind_expressions import ExpressionBinder
from plait.language.bind_items import WrittenItem
from plait.language.scope import BoundRelation, Scope, VisibleColumn
from plait.language.spans import span_of
from plait.plan.nodes import Join, Node, OuterJoin, OuterKind, Static


@dataclass(frozen=True)
class BoundFrom:
    """`plan` is None if something is wrong, which is recorded then."""

    plan: Node | None
    scope: Scope

    @property
    def range_us(self) -> int | None:
        """The range of the windows if they tick by time and are all alike."""
        ranges_us = {item.relation.range_us for item in self.scope.items if item.relation.ticks}
        return ranges_us.pop() if len(ranges_us) == 1 else None


class JoinBinder:
    def __init__(self, source: Source, errors: list[PlaitError]) -> None:
        self._source = source
        self._attempts = Attempts(errors)

    def bind(
        self,
        joins: Sequence[exp.Join],
        items: Sequence[WrittenItem],
        relations: Sequence[BoundRelation],
        are_sound: bool,
    ) -> BoundFrom:
        """The joined items, if their windows are sound, and the names that the rest of the block sees."""
        scope = Scope(()).with_item(items[0].alias, relations[0])
        predicates: list[Expression] = []
        for join, item, relation in zip(joins, items[1:], relations[1:], strict=True):
            bound = self._attempts.run(self._condition, join, scope, item, relation)
            scope, predicate = bound or (scope.with_item(item.alias, relation), TRUE)
            predicates.append(predicate)
        if self._attempts.failed or not are_sound:
            return BoundFrom(None, scope)
        plans = [relation.plan for relation in relations]
        return BoundFrom(self._attempts.run(self._joined, plans, joins, predicates), scope)

    def _condition(
        self, join: exp.Join, scope: Scope, item: WrittenItem, relation: BoundRelation
    ) -> tuple[Scope, Expression]:
        """The scope with one more item, and the condition under which its rows join."""
        self._check_kind(join)
        together = scope.with_item(item.alias, relation)
        on, using = join.args.get("on"), join.args.get("using")
        if using:
            return self._using(join, using, scope, together)
        if on is not None:
            binder = ExpressionBinder(lambda node: together.resolve(node, self._source), self._source, "ON")
            return together, binder.condition(on)
        if join.kind != "CROSS":
            raise UserError(
                "no-join-condition",
                f"the join with {item.label} has no condition",
                hint="add ON …; where every pair is meant, write CROSS JOIN",
                span=span_of(join, self._source),
            )
        return together, TRUE

    def _check_kind(self, join: exp.Join) -> None:
        match join.kind:
            case "SEMI":
                raise self._unsupported(join, "SEMI joins", "use JOIN and select the left columns")
            case "ANTI":
                raise self._unsupported(join, "ANTI joins", "use LEFT JOIN … WHERE … IS NULL")
            case "CROSS" if join.args.get("on") or join.args.get("using"):
                raise UserError(
                    "cross-join",
                    "a CROSS JOIN has no condition",
                    hint="write JOIN … ON …",
                    span=span_of(join, self._source),
                )
            case "" | "INNER" | "OUTER" | "CROSS" if join.side in ("", "LEFT", "RIGHT", "FULL"):
                return
            case _:
                kind = f"{join.side} {join.kind}".strip()
                raise self._unsupported(join, f"{kind} joins", "use INNER, LEFT, RIGHT or FULL joins")

    def _unsupported(self, join: exp.Join, construct: str, hint: str) -> PlaitError:
        return UnsupportedError(
            "unsupported-syntax",
            f"Plait does not support {construct}",
            hint=hint,
            span=span_of(join, self._source),
        )

    def _using(
        self, join: exp.Join, using: Sequence[exp.Identifier], left: Scope, together: Scope
    ) -> tuple[Scope, Expression]:
        right = Scope(together.items[-1:])
        terms: list[Expression] = []
        merged = dict(together.merged)
        hidden = set(together.hidden)
        for identifier in using:
            key = identifier.name.lower()
            left_column = self._using_column(identifier, left)
            right_column = self._using_column(identifier, right)
            try:
                terms.append(coercion.build("eq", left_column, right_column))
                either = coercion.build("coalesce", left_column, right_column)
            except FunctionTypeError as error:
                span = span_of(identifier, self._source)
                raise UserError("type", error.message, hint=error.hint, span=span) from None
            chosen = {"RIGHT": right_column, "FULL": either}.get(join.side, left_column)
            merged[key] = VisibleColumn(identifier.name, chosen, None)
            hidden |= {item.positions[key] for item in together.items if key in item.positions}
        return Scope(together.items, merged, frozenset(hidden)), conjunction(terms)

    def _using_column(self, identifier: exp.Identifier, scope: Scope) -> Expression:
        column = exp.Column(this=identifier.copy())
        found = scope.find(identifier.name)
        return scope.resolve(column, self._source) if found is None else found

    def _joined(
        self, plans: Sequence[Node], joins: Sequence[exp.Join], predicates: Sequence[Expression]
    ) -> Node:
        inputs = [plans[0]]
        terms: list[Expression] = []
        for plan, join, predicate in zip(plans[1:], joins, predicates, strict=True):
            if join.side:
                left = self._inner(inputs, terms, join)
                inputs = [self._outer(OuterKind(join.side.lower()), left, plan, predicate, join)]
                terms = []
            else:
                inputs.append(plan)
                terms += conjuncts(predicate)
        return self._inner(inputs, terms, joins[-1]) if joins else inputs[0]

    def _inner(self, inputs: Sequence[Node], terms: list[Expression], join: exp.Join) -> Node:
        if len(inputs) == 1:
            return inputs[0]
        if all(isinstance(node.timing, Static) for node in inputs):
            raise UnsupportedError(
                "no-stream",
                "this joins tables only",
                hint="join the tables in one FROM with a stream",
                span=span_of(join, self._source),
            )
        return Join(tuple(inputs), conjunction(terms))

    def _outer(self, kind: OuterKind, left: Node, right: Node, predicate: Expression, join: exp.Join) -> Node:
        kept = {OuterKind.LEFT: (left,), OuterKind.RIGHT: (right,), OuterKind.FULL: (left, right)}[kind]
        if any(isinstance(node.timing, Static) for node in kept):
            raise UnsupportedError(
                "kept-table",
                f"this {kind.value.upper()} JOIN keeps the rows of a table that nothing matches",
                detail="a row may still come that matches, so the answer would never be final",
                hint="keep the rows of the stream: `stream LEFT JOIN table ON …`",
                span=span_of(join, self._source),
            )
        return OuterJoin(kind, left, right, predicate)
