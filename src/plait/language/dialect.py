"""Our SQL: sqlglot's Spark dialect, made stricter, with the windows and table functions of stream queries.

Decides what the text of a query parses to. Three things differ from Spark's dialect:

- Nothing is reinterpreted. Every call arrives as `exp.Anonymous` with the name as written; only syntax that
  is no plain argument list has a node of its own (`CAST`, `TRY_CAST`, `EXTRACT`, `CASE`) or is put into plain
  form (`TRIM`, `POSITION`, `SUBSTRING`). What sqlglot swallows without a trace in the tree (a doubled comma,
  a missing THEN, FROM before SELECT …) is an error here; what leaves a trace is the binder's to refuse.
- `s [RANGE 5 MINUTES SLIDE 1 MINUTE]` sets `window` on the table or subquery, a `WindowClause`; the table
  functions `HOP` and `TUMBLE` are `WindowTable` nodes. Durations are `exp.Interval` nodes in microseconds.
- `''` inside a string is a quotation mark, as in Spark 4.

sqlglot's hooks are private: its version is locked, and the parser must be the pure Python one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import exp
from sqlglot import parser as sqlglot_parser
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from plait.errors import ExternalError, Source, Span, UnsupportedError, UserError
from plait.language.data_types import NESTED_TYPES, no_such_type
from plait.language.quantities import QuantityError, parse_duration

if not str(sqlglot_parser.__file__).endswith(".py"):  # a compiled class cannot be extended
    raise ExternalError(
        "compiled-sqlglot",
        "the compiled build of sqlglot is installed, and Plait needs the pure Python one",
        hint="pip uninstall sqlglotc",
    )

T = TypeVar("T")
E = TypeVar("E", bound=exp.Expr)


class WindowClause(exp.Expression):
    """`[RANGE size SLIDE slide]` or `[PARTITION BY … ROWS size SLIDE slide]`.

    `unit` is 'range' (size and slide are intervals) or 'rows' (they are whole numbers).
    """

    arg_types: ClassVar[dict[str, bool]] = {"unit": True, "size": True, "slide": False, "partition": False}


class WindowTable(exp.Expression):
    """`HOP(TABLE s, DESCRIPTOR(ts), slide, size[, offset])` or `TUMBLE(…, size[, offset])`.

    `function` is 'hop' or 'tumble', `table` a table or subquery, `descriptor` a column; the rest intervals.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "function": True,
        "table": True,
        "descriptor": True,
        "size": True,
        "slide": False,
        "offset": False,
        "alias": False,
        "joins": False,
    }


class QuerySyntaxError(ParseError):
    """What is wrong, and at which token (None: the text ended). sqlglot may catch it and try another way."""

    def __init__(self, message: str, token: Token | None) -> None:
        super().__init__(message)
        self.message = message
        self.token = token


WINDOW_FUNCTIONS = {"HOP": "hop", "TUMBLE": "tumble"}
OTHER_WINDOW_FUNCTIONS = frozenset({"CUMULATE", "SESSION"})

# Positional arguments after the table and the descriptor.
_WINDOW_FUNCTION_ARGUMENTS = {"hop": ("slide", "size", "offset"), "tumble": ("size", "offset")}
_NAMED_ARGUMENTS = {
    "DATA": "table",
    "TIMECOL": "descriptor",
    "SIZE": "size",
    "SLIDE": "slide",
    "OFFSET": "offset",
}

MAX_INTERVAL_PARTS = 7  # weeks to microseconds

# A default that tells a call without the argument from one that passes None.
_NOT_NESTED: Collection[TokenType] = frozenset()


class PlaitParser(SparkParser):
    """Parses the queries of one source. `statements` adds the statements around them."""

    # CAST gives exp.Cast, TRY_CAST exp.TryCast.
    STRICT_CAST = True
    # A join without a condition stays without one: the binder says so.
    ADD_JOIN_ON_TRUE = False
    # No INTERVAL '1 2' DAY TO HOUR.
    INTERVAL_SPANS = False

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
    STATEMENT_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {}
    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        token_type: parse
        for token_type, parse in SparkParser.QUERY_MODIFIER_PARSERS.items()
        if token_type is not TokenType.WINDOW
    }

    source: Source = Source("<sql>", "")
    _interval_parts = 0

    # Errors and places

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        raise QuerySyntaxError(message, token or self._curr or None)

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
        first = self._curr
        primary = super()._parse_primary()
        if isinstance(primary, exp.Concat):  # strings side by side are one string
            text = "".join(part.name for part in primary.expressions)
            return self._mark(exp.Literal(this=text, is_string=True), first)
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
        return super()._parse_types(check_func, schema, allow_identifiers, with_collation)

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

    # Windows

    def _parse_table_parts(self, *args: Any, **kwargs: Any) -> exp.Table | exp.Dot | None:
        table = super()._parse_table_parts(*args, **kwargs)
        if table is not None and not kwargs.get("fast"):
            if self._curr.token_type is TokenType.STAR:
                self.raise_error("unexpected token")
            self._attach_window(table)
        return table

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        table = self._parse_window_table() or super()._parse_table(*args, **kwargs)
        if table is not None:
            if table.args.get("indexed") is False:
                self.raise_error("unexpected token", self._prev)
            self._attach_window(table)
        return table

    def _parse_subquery(self, this: exp.Expr | None, parse_alias: bool = True) -> exp.Subquery | None:
        window = self._parse_stream_window() if parse_alias else None
        subquery = super()._parse_subquery(this, parse_alias)
        if subquery is not None and window is not None:
            subquery.set("window", window)
        return subquery

    def _attach_window(self, table: exp.Expr) -> None:
        first = self._curr
        window = self._parse_stream_window()
        if window is None:
            return
        if table.args.get("window") or isinstance(table, WindowTable):
            raise UserError("second-window", "this already has a window", span=self.span(first))
        table.set("window", window)

    def _parse_stream_window(self) -> WindowClause | None:
        if self._curr.token_type is not TokenType.L_BRACKET:
            return None
        first = self._curr
        self._advance()
        partition: list[exp.Expr] = []
        if self._match(TokenType.PARTITION_BY):
            partition = self._parse_csv(self._parse_column)
        if self._match_text_seq("NOW"):
            raise UnsupportedError(
                "window-now",
                "the window [NOW] is not supported",
                hint="[RANGE 1 MICROSECOND] holds the rows of one instant",
                span=self.span(first),
            )
        if self._match_text_seq("RANGE"):
            unit = "range"
        elif self._match_texts(("ROWS", "ROW")):
            unit = "rows"
        else:
            self.raise_error("expected RANGE or ROWS")
        if partition and unit == "range":
            raise UnsupportedError(
                "window-partition",
                "a time window is the same for all keys: PARTITION BY is for [ROWS …]",
                hint="leave PARTITION BY out and GROUP BY the keys",
                span=self.span(first),
            )
        size = self._parse_extent(unit)
        slide = self._parse_extent(unit) if self._match_text_seq("SLIDE") else None
        if not self._match(TokenType.R_BRACKET):
            self.raise_error("expected SLIDE or ]")
        return self._mark(WindowClause(unit=unit, size=size, slide=slide, partition=partition), first)

    def _parse_extent(self, unit: str) -> exp.Expr:
        """A window's size or slide: a duration or a number of rows, up to SLIDE or the bracket."""
        first = self._curr
        if self._match_text_seq("UNBOUNDED"):
            raise UnsupportedError(
                "window-unbounded",
                "a window without a bound would keep every row for ever",
                hint="give a duration that covers what you need, such as [RANGE 7 DAYS SLIDE 1 HOUR]",
                span=self.span(first),
            )
        if unit == "range":
            return self._parse_duration_until(lambda: self._match_text_seq("SLIDE", advance=False))
        if not self._match(TokenType.NUMBER) or not first.text.isdecimal() or int(first.text) == 0:
            raise UserError(
                "window-rows",
                "a row window counts whole rows, at least 1",
                hint="for example [ROWS 100 SLIDE 10]",
                span=self.span(first, first) if first else self.span(self._prev),
            )
        return self.expression(exp.Literal(this=first.text, is_string=False), first)

    def _parse_duration_until(
        self, ends: Callable[[], bool], *, positive: bool = True, signed: bool = False
    ) -> exp.Interval:
        """A duration in any spelling (`2min`, `5 MINUTES`, `INTERVAL '5' MINUTES`), read from the text.

        Spark's tokens do not suit it: `5s` would be the SMALLINT 5.
        """
        first = self._curr
        closing = (TokenType.R_BRACKET, TokenType.R_PAREN, TokenType.COMMA)
        while self._curr and self._curr.token_type not in closing and not ends():
            self._advance()
        if not first or self._curr is first:
            self.raise_error("expected a duration such as 5 MINUTES")
        text = self.sql[first.start : self._prev.end + 1]
        try:
            microseconds = parse_duration(text, positive=positive, signed=signed)
        except QuantityError as error:
            raise UserError("duration", error.message, hint=error.hint, span=self.span(first)) from None
        interval = exp.Interval(this=exp.Literal.string(str(microseconds)), unit=exp.Var(this="MICROSECOND"))
        return self._mark(interval, first)

    def _parse_window_table(self) -> WindowTable | None:
        """HOP or TUMBLE in FROM, alone or as TABLE(HOP(…)), with its alias."""
        first = self._curr
        wrapped = self._match_pair(TokenType.TABLE, TokenType.L_PAREN)
        name = self._curr.text.upper()
        is_call = (
            self._next.token_type is TokenType.L_PAREN and self._curr.token_type is not TokenType.IDENTIFIER
        )
        if is_call and name in OTHER_WINDOW_FUNCTIONS:
            raise UnsupportedError(
                "window-function",
                f"the window function {name} is not supported",
                hint="HOP and TUMBLE are",
                span=self.span(self._curr, self._curr),
            )
        if not (is_call and name in WINDOW_FUNCTIONS):
            if wrapped:
                self.raise_error("expected HOP or TUMBLE")
            return None
        function = WINDOW_FUNCTIONS[name]
        self._advance(2)
        node = WindowTable(function=function, **self._parse_window_table_arguments(function))
        if not self._match(TokenType.R_PAREN) or (wrapped and not self._match(TokenType.R_PAREN)):
            self.raise_error("expected )")
        self._mark(node, first)
        node.set("alias", self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS))
        return node

    def _parse_window_table_arguments(self, function: str) -> dict[str, exp.Expr]:
        first = self._tokens[self._index - 2]
        allowed = ("table", "descriptor", *_WINDOW_FUNCTION_ARGUMENTS[function])
        arguments: dict[str, exp.Expr] = {}
        while True:
            start = self._curr
            if self._next.token_type is TokenType.FARROW:
                name = _NAMED_ARGUMENTS.get(start.text.upper(), "")
                self._advance(2)
            else:
                name = allowed[len(arguments)] if len(arguments) < len(allowed) else ""
            if name not in allowed or name in arguments:
                self.raise_error(f"unexpected argument of {function.upper()}", start)
            arguments[name] = self._parse_window_table_argument(name)
            if not self._match(TokenType.COMMA):
                break
        missing = [name for name in allowed if name != "offset" and name not in arguments]
        if missing:
            shape = ", ".join(_WINDOW_FUNCTION_ARGUMENTS[function][:-1])
            raise UserError(
                "window-function",
                f"{function.upper()} lacks its {missing[0]}",
                hint=f"{function.upper()}(TABLE stream, DESCRIPTOR(event_time), {shape})",
                span=self.span(first),
            )
        return arguments

    def _parse_window_table_argument(self, name: str) -> exp.Expr:
        match name:
            case "table":
                self._match(TokenType.TABLE)
                table = super()._parse_table()
                if table is None:
                    self.raise_error("expected the name of a stream")
                return table
            case "descriptor":
                if not self._match_text_seq("DESCRIPTOR", "("):
                    self.raise_error("expected DESCRIPTOR(column)")
                column = self._parse_column()
                if not isinstance(column, exp.Column) or not self._match(TokenType.R_PAREN):
                    self.raise_error("expected one column in DESCRIPTOR(…)")
                return column
            case _:
                return self._parse_duration_until(
                    lambda: False, positive=name != "offset", signed=name == "offset"
                )


class Plait(Spark):
    """The dialect's entry points: its tokenizer and its parser."""

    class Tokenizer(Spark.Tokenizer):
        # `window(ts, '5 minutes')` is a call like any other.
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            keyword: token_type
            for keyword, token_type in Spark.Tokenizer.KEYWORDS.items()
            if token_type is not TokenType.WINDOW
        }
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
        # EXPLAIN, SHOW … would swallow the rest of the text as one string.
        COMMANDS: ClassVar[set[TokenType]] = set()

    Parser = PlaitParser
