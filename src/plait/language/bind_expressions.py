"""From the syntax of an expression to a typed expression over the columns of a block.

Types, casts and what a function accepts are decided in `plait.expressions`; here names are resolved,
shorthands (BETWEEN, IS NOT NULL, ESCAPE …) are spelled out, constants are read, and what has no fixed
value or no meaning in its place is refused. Aggregates become columns behind those of the block's input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from sqlglot import exp

from plait.errors import PlaitError, Source, UnsupportedError, UserError, closest
from plait.expressions import aggregates, coercion, functions
from plait.expressions.aggregates import AggregateCall
from plait.expressions.functions import FunctionTypeError
from plait.expressions.nodes import FALSE, TRUE, Column, Expression, Literal
from plait.expressions.types import BOOLEAN, INTERVAL, STRING, Kind, Type
from plait.language.attempts import Attempts
from plait.language.data_types import value_type
from plait.language.limits import clip
from plait.language.spans import span_of
from plait.language.window_spellings import duration_us

_BINARY: Mapping[type[exp.Expr], str] = MappingProxyType(
    {
        exp.EQ: "eq",
        exp.NEQ: "ne",
        exp.LT: "lt",
        exp.LTE: "le",
        exp.GT: "gt",
        exp.GTE: "ge",
        exp.NullSafeEQ: "null_safe_eq",
        exp.Add: "add",
        exp.Sub: "subtract",
        exp.Mul: "multiply",
        exp.Div: "divide",
        exp.IntDiv: "int_divide",
        exp.Mod: "modulo",
        exp.Like: "like",
        exp.RegexpLike: "rlike",
    }
)
# Operators that are associative and take any number of operands.
_CHAINS: Mapping[type[exp.Expr], str] = MappingProxyType({exp.And: "and", exp.Or: "or", exp.DPipe: "concat"})

# Functions whose first argument is a unit of time, which may be written without quotes.
_WITH_UNIT = frozenset({"timestampdiff", "timestampadd", "datediff"})

# An open NULL: functions give it the type that they want.
_NULL = Literal(None, BOOLEAN)


class AggregateList:
    """The aggregates of a block, each once, as columns behind the `width` columns of the block's input."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._positions: dict[AggregateCall, int] = {}

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        return tuple(self._positions)

    def column(self, call: AggregateCall) -> Column:
        index = self._positions.setdefault(call, len(self._positions))
        return Column(self._width + index, call.type)


class ExpressionBinder:
    """Binds the expressions of one clause. `resolve` says what a column name stands for in it."""

    def __init__(
        self,
        resolve: Callable[[exp.Column], Expression],
        source: Source,
        clause: str,
        aggregates: AggregateList | None = None,
        resolve_argument: Callable[[exp.Column], Expression] | None = None,
    ) -> None:
        self._resolve = resolve
        self._source = source
        self._clause = clause
        self._aggregates = aggregates
        self._resolve_argument = resolve_argument or resolve

    def conditions(self, node: exp.Expr, attempts: Attempts) -> list[Expression]:
        """The terms of a conjunction. Each may fail on its own, which is then recorded."""
        terms = [node] if not isinstance(node, exp.And) else _chain(node)
        bound = [attempts.run(self.condition, term) for term in terms]
        return [term for term in bound if term is not None]

    def condition(self, node: exp.Expr) -> Expression:
        """An expression that must be true or false."""
        bound = self.bind(node)
        if bound.type != BOOLEAN:
            raise UserError(
                "not-boolean",
                f"{self._clause} needs a condition; this is {bound.type}",
                hint="compare it with something, for example `… > 0`",
                span=span_of(node, self._source),
            )
        return bound

    def bind(self, node: exp.Expr) -> Expression:
        """Any expression, with whatever type it has."""
        kind = type(node)
        if kind in _BINARY:
            self._check_quotes(node)
            return self._build(node, _BINARY[kind], self.bind(node.this), self.bind(node.expression))
        if kind in _CHAINS:
            return self._build(node, _CHAINS[kind], *(self.bind(term) for term in _chain(node)))
        match node:
            case exp.Column() if not isinstance(node.this, exp.Star):
                return self._resolve(node)
            case exp.Literal() | exp.Boolean() | exp.Null() | exp.Interval():
                return self._constant(node)
            case exp.Paren():
                return self.bind(node.this)
            case exp.Neg():
                return self._negation(node)
            case exp.Not():
                return self._build(node, "not", self.bind(node.this))
            case exp.NullSafeNEQ():
                equal = self._build(node, "null_safe_eq", self.bind(node.this), self.bind(node.expression))
                return self._build(node, "not", equal)
            case exp.Is():
                return self._is(node)
            case exp.Between():
                value = self.bind(node.this)
                low = self._build(node, "ge", value, self.bind(node.args["low"]))
                high = self._build(node, "le", value, self.bind(node.args["high"]))
                return self._build(node, "and", low, high)
            case exp.In():
                return self._build(node, "in", self.bind(node.this), *map(self.bind, node.expressions))
            case exp.Escape():
                return self._escaped_like(node)
            case exp.Case():
                return self._case(node)
            case exp.Cast():  # TRY_CAST too: our casts never fail
                return self._cast(node)
            case exp.Extract():
                return self._extract(node)
            case exp.Anonymous():
                return self._call(node, condition=None)
            case exp.Filter():
                return self._filtered(node)
            case _:
                raise self._no_value(node)

    def _no_value(self, node: exp.Expr) -> PlaitError:
        span = span_of(node, self._source)
        match node:
            case exp.Star() | exp.Column():
                return UserError(
                    "star",
                    f"* stands for several columns and is no value in {self._clause}",
                    hint="name a column",
                    span=span,
                )
            case exp.Query():
                return UnsupportedError(
                    "subquery-in-expression",
                    "a subquery is not supported inside an expression",
                    hint="write it as a subquery in FROM and join it",
                    span=span,
                )
            case _:
                return UnsupportedError(
                    "unsupported-syntax",
                    f"`{node.key.upper()}` is not supported in {self._clause}",
                    hint="docs/language.md says what an expression may be made of",
                    span=span,
                )

    def _build(self, node: exp.Expr, name: str, *arguments: Expression) -> Expression:
        try:
            return coercion.build(name, *arguments)
        except FunctionTypeError as error:
            raise self._type_error(node, error) from None

    def _type_error(self, node: exp.Expr, error: FunctionTypeError) -> PlaitError:
        return UserError("type", error.message, hint=error.hint, span=span_of(node, self._source))

    # Constants

    def _constant(self, node: exp.Expr) -> Expression:
        match node:
            case exp.Null():
                return _NULL
            case exp.Boolean():
                return TRUE if node.this else FALSE
            case exp.Interval():
                return Literal(duration_us(node, self._source, signed=True), INTERVAL)
            case exp.Literal() if node.is_string:
                if self._is_double_quoted(node) and self._is_column(node.name):
                    raise self._quoted_name(node)
                return Literal(node.this, STRING)
            case _:
                return self._number(node, node.name)

    def _check_quotes(self, node: exp.Expr) -> None:
        """`"kind" = "start"` compares two constants, which nobody means."""
        first, second = node.this, node.expression
        if all(isinstance(side, exp.Literal) and side.is_string for side in (first, second)):
            for side in (first, second):
                if self._is_double_quoted(side):
                    raise self._quoted_name(side)

    def _is_double_quoted(self, literal: exp.Literal) -> bool:
        start = literal.meta.get("start")
        return start is not None and self._source.text[start] == '"'

    def _is_column(self, name: str) -> bool:
        try:
            self._resolve(exp.column(name))
        except UserError as error:
            return error.code == "ambiguous-column"
        return True

    def _quoted_name(self, literal: exp.Literal) -> PlaitError:
        name = clip(literal.name)
        return UserError(
            "double-quotes",
            f"a text in double quotes is a constant, and `{name}` reads like a column",
            hint=f"for the column write `{name}` in backquotes, for the text '{name}'",
            span=span_of(literal, self._source),
        )

    def _number(self, node: exp.Expr, text: str) -> Expression:
        try:
            return coercion.number_literal(text)
        except FunctionTypeError as error:
            raise self._type_error(node, error) from None

    def _negation(self, node: exp.Neg) -> Expression:
        operand = node.this
        if isinstance(operand, exp.Literal) and not operand.is_string:
            return self._number(node, f"-{operand.name}")  # the least BIGINT has no positive counterpart
        return self._build(node, "negate", self.bind(operand))

    def _cast(self, node: exp.Cast) -> Expression:
        to = value_type(node.args["to"], self._source)
        operand = node.this
        try:
            if isinstance(operand, exp.Literal) and not self._is_written_cast(node, operand):
                return self._typed_literal(operand, to)
            if isinstance(operand, exp.Null):
                return Literal(None, to)
            return coercion.build("cast", self.bind(operand), to=to)
        except FunctionTypeError as error:
            raise self._type_error(node, error) from None

    def _is_written_cast(self, node: exp.Cast, literal: exp.Literal) -> bool:
        """Whether it is CAST(literal AS …), which the dialect gives a place, or literal::…"""
        end = literal.meta.get("end", -1) + 1
        return "start" in node.meta or (
            end > 0 and self._source.text[end : end + 100].lstrip().startswith("::")
        )

    def _typed_literal(self, literal: exp.Literal, to: Type) -> Expression:
        """DATE '…', TIMESTAMP '…', 5L, 1.5BD: a bad value is a mistake there, and NULL in a CAST."""
        if literal.is_string and to.kind is not Kind.DECIMAL:
            return coercion.coerce(Literal(literal.this, STRING), to)
        return coercion.coerce(coercion.number_literal(literal.name), to)

    # Shorthands

    def _is(self, node: exp.Is) -> Expression:
        value = self.bind(node.this)
        if isinstance(node.expression, exp.Null):
            return self._build(node, "is_null", value)
        if isinstance(node.expression, exp.Boolean):
            return self._build(node, "null_safe_eq", value, TRUE if node.expression.this else FALSE)
        raise UserError("syntax", "IS takes NULL, TRUE or FALSE", span=span_of(node, self._source))

    def _escaped_like(self, node: exp.Escape) -> Expression:
        """LIKE with another escape sign than the backslash: put the pattern into the usual form."""
        like, sign = node.this, node.expression
        pattern = like.expression if isinstance(like, exp.Like) else None
        if not (isinstance(pattern, exp.Literal) and isinstance(sign, exp.Literal) and len(sign.name) == 1):
            raise UnsupportedError(
                "like-escape",
                "ESCAPE works with a constant pattern and one sign",
                hint="for example a LIKE '10!%' ESCAPE '!'",
                span=span_of(node, self._source),
            )
        written = _with_backslashes(pattern.name, sign.name)
        if written is None:
            raise UserError(
                "like-escape",
                f"in this pattern `{sign.name}` escapes something other than %, _ or itself",
                span=span_of(pattern, self._source),
            )
        return self._build(node, "like", self.bind(like.this), Literal(written, STRING))

    def _case(self, node: exp.Case) -> Expression:
        subject = None if node.this is None else self.bind(node.this)
        arguments: list[Expression] = []
        for branch in node.args["ifs"]:
            when = self.bind(branch.this)
            arguments.append(when if subject is None else self._build(branch, "eq", subject, when))
            arguments.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        arguments.append(_NULL if default is None else self.bind(default))
        return self._build(node, "case", *arguments)

    def _extract(self, node: exp.Extract) -> Expression:
        field = Literal(node.this.name.upper(), STRING)
        return self._build(node, "date_part", field, self.bind(node.expression))

    # Functions and aggregates

    def _call(self, node: exp.Anonymous, condition: exp.Expr | None) -> Expression:
        name = node.name.lower()
        if name in aggregates.SQL_AGGREGATES:
            return self._aggregate(node, aggregates.SQL_AGGREGATES[name], condition)
        if condition is not None:
            raise UserError(
                "filter",
                f"FILTER (WHERE …) belongs to an aggregate; {name} is none",
                hint="use CASE WHEN … THEN … END",
                span=span_of(node, self._source),
            )
        if name in functions.SQL_NAMES:
            return self._function(node, functions.SQL_NAMES[name])
        raise self._unknown_function(node, name)

    def _function(self, node: exp.Anonymous, name: str) -> Expression:
        written = node.expressions
        arguments = [self.bind(argument) for argument in written[1:]]
        if not written:
            return self._build(node, name)
        first = written[0]
        if name in _WITH_UNIT and len(written) == 3 and isinstance(first, exp.Column) and not first.table:
            return self._build(node, name, Literal(first.name, STRING), *arguments)
        return self._build(node, name, self.bind(first), *arguments)

    def _unknown_function(self, node: exp.Anonymous, name: str) -> PlaitError:
        span = span_of(node, self._source)
        if name in functions.REFUSED:
            reason = functions.REFUSED[name]
            return UnsupportedError(
                "unsupported-function", f"the function {name} is not supported", hint=reason, span=span
            )
        if name == "window":
            return UserError(
                "window-call",
                "window(…) belongs into GROUP BY",
                hint="select `window_start` and `window_end`",
                span=span,
            )
        known = [*functions.SQL_NAMES, *aggregates.SQL_AGGREGATES]
        return UserError(
            "unknown-function", f"there is no function `{node.name}`", hint=closest(name, known), span=span
        )

    def _filtered(self, node: exp.Filter) -> Expression:
        if not isinstance(node.this, exp.Anonymous):
            raise UserError(
                "filter", "FILTER (WHERE …) belongs to an aggregate", span=span_of(node, self._source)
            )
        return self._call(node.this, condition=node.expression.this)

    def _aggregate(self, node: exp.Anonymous, name: str, condition: exp.Expr | None) -> Expression:
        if self._aggregates is None:
            raise self._misplaced_aggregate(node)
        inner = ExpressionBinder(self._resolve_argument, self._source, f"an argument of {node.name}")
        written = node.expressions
        if len(written) == 1 and isinstance(written[0], exp.Star) and name == "count":
            written = []
        elif not written:
            raise UserError(
                "aggregate",
                f"{node.name}() needs an argument",
                hint="count(*) counts rows",
                span=span_of(node, self._source),
            )
        if len(written) == 1 and isinstance(written[0], exp.Distinct):
            if name != "count":
                raise UnsupportedError(
                    "aggregate-distinct",
                    f"{node.name}(DISTINCT …) is not supported",
                    hint="count(DISTINCT …) is; or group by the column in a subquery first",
                    span=span_of(node, self._source),
                )
            name, written = "count_distinct", written[0].expressions
        arguments = tuple(inner.bind(argument) for argument in written)
        try:
            arguments = aggregates.coerce_arguments(name, arguments)
            kept = None
            if condition is not None:
                kept = ExpressionBinder(self._resolve_argument, self._source, "FILTER").condition(condition)
            call = AggregateCall(name, arguments, kept)
        except FunctionTypeError as error:
            raise self._type_error(node, error) from None
        for argument, part in zip(arguments, written, strict=True):
            if argument.type.kind is Kind.INTERVAL:
                raise UserError(
                    "interval",
                    f"{node.name} does not take an interval",
                    hint="convert it to a number first",
                    span=span_of(part, self._source),
                )
        return self._aggregates.column(call)

    def _misplaced_aggregate(self, node: exp.Anonymous) -> PlaitError:
        hints = {
            "WHERE": "use HAVING, or aggregate in a subquery in FROM",
            "GROUP BY": "aggregate in a subquery in FROM and group by its column",
            "ON": "aggregate in a subquery in FROM and join it",
        }
        return UserError(
            "misplaced-aggregate",
            f"the aggregate {node.name} cannot stand in {self._clause}",
            hint=hints.get(self._clause, "aggregate in a subquery in FROM first"),
            span=span_of(node, self._source),
        )


def contains_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has aggregates of its own block."""
    return any(
        isinstance(part, exp.Anonymous) and part.name.lower() in aggregates.SQL_AGGREGATES
        for part in node.walk(prune=lambda part: isinstance(part, exp.Query))
    )


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a chain of one associative operator, from left to right, whatever its length."""
    operands: list[exp.Expr] = []
    stack = [node]
    while stack:
        current = stack.pop()
        inside = current.unnest()
        if type(inside) is type(node):
            stack += [inside.expression, inside.this]
        else:
            operands.append(current)
    return operands


def _with_backslashes(pattern: str, sign: str) -> str | None:
    written: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == sign:
            escaped = next(characters, "")
            if escaped not in {"%", "_", sign}:
                return None
            written.append(f"\\{escaped}" if escaped in "%_\\" else escaped)
        else:
            written.append("\\\\" if character == "\\" else character)
    return "".join(written)
