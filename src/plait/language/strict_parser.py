"""sqlglot's Spark parser without its leniency.

Decides what the expressions and clauses of a query parse to. Nothing is reinterpreted: every call arrives as
`exp.Anonymous` with the name as written; only syntax that is no plain argument list has a node of its own
(`CAST`, `TRY_CAST`, `EXTRACT`, `CASE`) or is put into plain form (`TRIM`, `POSITION`, `SUBSTRING`). Negation
is always `exp.Not`.

sqlglot takes much that no grammar has, and leaves no trace of it in the tree: a doubled comma, CASE without
THEN, a join whose ON has no condition, FROM before SELECT. That is an error here. What does leave a trace is
the binder's to refuse, by its list. Two of sqlglot's look-aheads take exponential time (joins without ON,
`type(…)` in expressions) and are cut short.

sqlglot's hooks are private: its version is locked, and the parser must be the pure Python one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import exp
from sqlglot import parser as sqlglot_parser
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from plait.errors import ExternalError, Source, Span
from plait.language.data_types import NESTED_TYPES, no_such_type
from plait.language.limits import clip

if not str(sqlglot_parser.__file__).endswith(".py"):  # a compiled class cannot be extended
    raise ExternalError(
        "compiled-sqlglot",
        "the compiled build of sqlglot is installed, and Plait needs the pure Python one",
        hint="pip uninstall sqlglotc",
    )

MAX_INTERVAL_PARTS = 7  # weeks to microseconds

T = TypeVar("T")
E = TypeVar("E", bound=exp.Expr)

# A default that tells a call without the argument from one that passes None.
_NOT_NESTED: Collection[TokenType] = frozenset()


class QuerySyntaxError(ParseError):
    """What is wrong, and at which token (None: the text ended). sqlglot may catch it and try another way."""

    def __init__(self, message: str, token: Token | None, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.token = token
        self.hint = hint


class StrictParser(SparkParser):
    """Parses queries of `source`."""

    # CAST gives exp.Cast, TRY_CAST exp.TryCast.
    STRICT_CAST = True
    # A join without a condition stays without one: the binder says so.
    ADD_JOIN_ON_TRUE = False

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CAST": lambda self: self._parse_closed(lambda: self._parse_cast(strict=True)),
        "TRY_CAST": lambda self: self._parse_closed(lambda: self._parse_cast(strict=False, safe=True)),
        "EXTRACT": lambda self: self._parse_closed(self._parse_extract),
        "POSITION": lambda self: self._parse_closed(self._parse_position_call),
        "SUBSTRING": lambda self: self._parse_closed(self._parse_substring_call),
        "SUBSTR": lambda self: self._parse_closed(self._parse_substring_call),
        "TRIM": lambda self: self._parse_closed(self._parse_trim_call),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CASE": lambda self: self._parse_case(),
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        token_type: partial(exp.Anonymous, this=node.sql_names()[0].lower(), expressions=[])
        for token_type, node in SparkParser.NO_PAREN_FUNCTIONS.items()
    }
    PRIMARY_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **SparkParser.PRIMARY_PARSERS,
        TokenType.NULL: lambda self, token: self.expression(exp.Null(), token),
        TokenType.TRUE: lambda self, token: self.expression(exp.Boolean(this=True), token),
        TokenType.FALSE: lambda self, token: self.expression(exp.Boolean(this=False), token),
        TokenType.NUMBER: lambda self, token: self._parse_number_token(token),
    }
    # Not the operators on JSON.
    COLUMN_OPERATORS: ClassVar[dict[TokenType, Callable[..., Any] | None]] = {
        token_type: SparkParser.COLUMN_OPERATORS[token_type]
        for token_type in (TokenType.DOT, TokenType.DCOLON)
    }
    STATEMENT_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {}
    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        token_type: parse
        for token_type, parse in SparkParser.QUERY_MODIFIER_PARSERS.items()
        if token_type is not TokenType.WINDOW
    }

    source: Source = Source("<sql>", "")
    _interval_parts = 0

    # Errors and places

    def raise_error(self, message: str, token: Token | None = None, hint: str = "") -> NoReturn:
        raise QuerySyntaxError(message, token or self._curr or None, hint)

    def span(self, first: Token, last: Token | None = None) -> Span:
        """From a token to another, by default the last one consumed."""
        return Span(self.source, first.start, (last or self._prev).end + 1)

    def _mark(self, node: E, first: Token) -> E:
        """Give a node the place from `first` to the last token consumed."""
        node.meta["start"] = first.start
        node.meta["end"] = self._prev.end
        return node

    # Stricter than sqlglot

    def _parse_csv(self, parse_method: Callable[[], T | None], sep: TokenType = TokenType.COMMA) -> list[T]:
        first = parse_method()
        items = [] if first is None else [first]
        while self._match(sep):
            item = parse_method() if items else None
            if item is None:
                self.raise_error("expected an expression")
            items.append(item)
        return items

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        projections, exclude = super()._parse_projections()
        if not projections:
            self.raise_error("expected what to SELECT")
        return projections, exclude

    def _parse_statement(self) -> exp.Expr | None:
        """The query after WITH, or the body of a common table expression."""
        return self._parse_ddl_select()

    def _parse_table_part(self, schema: bool = False) -> exp.Expr | None:
        if self._curr.token_type is TokenType.STRING:
            self.raise_error(
                "expected the name of a stream, table or query",
                hint=f"names go without quotes, or in backquotes: `{clip(self._curr.text)}`",
            )
        return super()._parse_table_part(schema)

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if self._curr.token_type in (
            TokenType.FROM,
            TokenType.VALUES,
            TokenType.SUMMARIZE,
            TokenType.DESCRIBE,
        ):
            self.raise_error("expected SELECT")
        return super()._parse_select_query(*args, **kwargs)

    def _parse_joins(self, alias_tokens: Collection[TokenType] | None = _NOT_NESTED) -> Iterator[exp.Join]:
        # `a JOIN b JOIN c ON … ON …`: sqlglot looks for it behind every join without ON, in exponential time.
        # Only that look-ahead passes the argument.
        if alias_tokens is not _NOT_NESTED:
            return iter(())
        return super()._parse_joins()

    def _parse_group(self, *args: Any, **kwargs: Any) -> exp.Group | None:
        group = super()._parse_group(*args, **kwargs)
        if group is not None and (not any(group.args.values()) or group.args.get("all") is False):
            self.raise_error("expected what to GROUP BY")
        return group

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        node = super()._parse_in(this, alias)
        if not any(value for part, value in node.args.items() if part != "this"):
            self.raise_error("expected a value in IN (…)", self._prev)
        return node

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        argument = super()._parse_lambda(alias)
        if isinstance(argument, exp.Distinct) and not argument.expressions:
            self.raise_error("expected an expression")
        return argument

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        low = self._parse_bitwise()
        if not self._match(TokenType.AND):
            self.raise_error("expected AND between the bounds of BETWEEN")
        return self.expression(exp.Between(this=this, low=low, high=self._parse_bitwise()))

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        join = super()._parse_join(*args, **kwargs)
        if self._prev.token_type in (TokenType.ON, TokenType.USING):
            self.raise_error("expected a condition")
        return join

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        alias = super()._parse_alias(this, explicit)
        if self._prev.token_type is TokenType.ALIAS:
            self.raise_error("expected a name")
        return alias

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        alias = super()._parse_table_alias(alias_tokens)
        if self._prev.token_type is TokenType.ALIAS:
            self.raise_error("expected a name")
        return alias

    def _parse_ordered(self, parse_method: Callable[[], exp.Expr | None] | None = None) -> exp.Ordered | None:
        ordered = super()._parse_ordered(parse_method)
        before = self._tokens[self._index - 2].token_type if self._index > 1 else None
        if self._prev.token_type is TokenType.DESC and before is TokenType.ASC:
            self.raise_error("unexpected token", self._prev)
        return ordered

    def _parse_limit_options(self) -> exp.LimitOptions | None:
        index = self._index
        limit_options = super()._parse_limit_options()
        if limit_options is None and self._index != index:
            self.raise_error("unexpected token", self._prev)
        return limit_options

    def _negate_range(self, this: exp.Expr | None = None) -> exp.Expr | None:
        return self.expression(exp.Not(this=this))

    def _parse_case(self) -> exp.Expr | None:
        if self._match(TokenType.DOT, advance=False):  # a column or alias named `case`
            return super()._parse_case()
        first = self._prev
        operand = None if self._match(TokenType.WHEN, advance=False) else self._parse_disjunction()
        branches = []
        while self._match(TokenType.WHEN):
            condition = self._parse_disjunction()
            if not self._match(TokenType.THEN):
                self.raise_error("expected THEN")
            branches.append(self.expression(exp.If(this=condition, true=self._parse_disjunction())))
        if not branches:
            self.raise_error("expected WHEN")
        default = None
        if self._match(TokenType.ELSE):
            default = self._parse_disjunction()
            if default is None:
                self.raise_error("expected an expression")
        if not self._match(TokenType.END):
            self.raise_error("expected WHEN, ELSE or END")
        return self._mark(self.expression(exp.Case(this=operand, ifs=branches, default=default)), first)

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        if self._match_pair(TokenType.FILTER, TokenType.L_PAREN, advance=False):
            condition = self._tokens[self._index + 2 : self._index + 3]
            if not condition or condition[0].token_type is not TokenType.WHERE:
                self.raise_error("expected WHERE", condition[0] if condition else None)
        return super()._parse_window(this, alias=alias)

    def _parse_number_token(self, token: Token) -> exp.Expr:
        if token.text[-1] in "eE":
            self.raise_error("expected the digits of the exponent", token)
        return self.expression(exp.Literal(this=token.text, is_string=False), token)

    def _parse_primary(self) -> exp.Expr | None:
        first, second = self._curr, self._next
        primary = super()._parse_primary()
        if isinstance(primary, exp.Concat):  # strings side by side: Spark's one string, but hardly meant
            self.raise_error("unexpected token", second, "a comma is missing before it, or || to join texts")
        if isinstance(primary, exp.Paren):
            return self._mark(primary, first)
        return primary

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        first = self._curr
        self._interval_parts = 1 if require_interval else self._interval_parts + 1
        if self._interval_parts > MAX_INTERVAL_PARTS:
            self.raise_error("expected fewer parts of one INTERVAL")
        interval = super()._parse_interval(require_interval, parse_function_unit)
        return None if interval is None else self._mark(interval, first)

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        follows = self._next.token_type
        if check_func and follows in (TokenType.L_PAREN, TokenType.LT):
            # `date(x)` is a call and `date < x` a comparison: sqlglot would try both, in exponential time.
            return None
        if follows is TokenType.LT and self._curr.token_type in self.NESTED_TYPE_TOKENS:
            first = self._curr
            self._advance()
            depth = 0
            while self._curr:
                depth += {TokenType.LT: 1, TokenType.GT: -1}.get(self._curr.token_type, 0)
                self._advance()
                if depth == 0:
                    break
            raise no_such_type(
                f"{first.text.upper()}<…>", self.span(first), NESTED_TYPES.get(first.text.upper())
            )
        first = self._curr
        type_ = super()._parse_types(check_func, schema, allow_identifiers, with_collation)
        return self._mark(type_, first) if isinstance(type_, exp.DataType) else type_

    def _parse_closed(self, parse_method: Callable[[], exp.Expr | None]) -> exp.Expr:
        """The inside of a call with syntax of its own, up to its closing parenthesis, which must be there."""
        first = self._tokens[self._index - 2]
        node = parse_method()
        if node is None or self._curr.token_type is not TokenType.R_PAREN:
            self.raise_error("expected )")
        node.meta["start"], node.meta["end"] = first.start, self._curr.end
        return node

    # Calls with words between their arguments, in plain form

    def _call(self, name: str, *arguments: exp.Expr | None) -> exp.Anonymous:
        if any(argument is None for argument in arguments):
            self.raise_error("expected an expression")
        return self.expression(exp.Anonymous(this=name, expressions=list(arguments)))

    def _parse_position_call(self) -> exp.Expr:
        arguments: list[exp.Expr | None] = [*self._parse_csv(self._parse_bitwise)]
        if len(arguments) == 1 and self._match(TokenType.IN):
            arguments.append(self._parse_bitwise())
        return self._call("position", *arguments)

    def _parse_substring_call(self) -> exp.Expr:
        arguments: list[exp.Expr | None] = [*self._parse_csv(self._parse_disjunction)]
        if len(arguments) == 1:
            if self._match(TokenType.FROM):
                arguments.append(self._parse_bitwise())
            if self._match(TokenType.FOR):
                if len(arguments) == 1:
                    arguments.append(exp.Literal.number(1))
                arguments.append(self._parse_bitwise())
        return self._call("substring", *arguments)

    def _parse_trim_call(self) -> exp.Expr:
        """`TRIM([BOTH|LEADING|TRAILING] [characters FROM] text)`: `trim|ltrim|rtrim([characters,] text)`."""
        name = "trim"
        if self._match_texts(("BOTH", "LEADING", "TRAILING")):
            name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[self._prev.text.upper()]
            if self._match(TokenType.FROM):
                return self._call(name, self._parse_bitwise())
        arguments: list[exp.Expr | None] = [*self._parse_csv(self._parse_bitwise)]
        if len(arguments) == 1 and self._match(TokenType.FROM):
            arguments.append(self._parse_bitwise())
        return self._call(name, *arguments)
