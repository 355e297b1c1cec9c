"""Our SQL: Spark's, made strict, with the windows and table functions of stream queries.

Decides how windows are written. `s [RANGE 5 MINUTES SLIDE 1 MINUTE]`, before or behind the alias, sets
`window` on the table or subquery, a `WindowClause`; the table functions `HOP` and `TUMBLE` are `WindowTable`
nodes. Their durations are `exp.Interval` nodes in microseconds, whatever their spelling. `GROUP BY window(…)`
is a call like any other. `''` inside a string is a quotation mark, as in Spark 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import TokenType

from plait.errors import UnsupportedError, UserError, closest
from plait.language.quantities import QuantityError, parse_duration
from plait.language.strict_parser import StrictParser


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


class PlaitParser(StrictParser):
    """Parses queries with windows. `statement_parser` adds the statements around them."""

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
            comma = self._match(TokenType.COMMA, advance=False)
            hint = "no comma: [RANGE 5 MINUTES SLIDE 1 MINUTE]" if comma else ""
            self.raise_error("expected ]" if slide else "expected SLIDE or ]", hint=hint)
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
            return self._parse_duration_until(self._at_slide)
        if not self._match(TokenType.NUMBER) or not first.text.isdecimal() or int(first.text) == 0:
            raise UserError(
                "window-rows",
                "a row window counts whole rows, at least 1",
                hint="for example [ROWS 100 SLIDE 10]",
                span=self.span(first, first) if first else self.span(self._prev),
            )
        return self.expression(exp.Literal(this=first.text, is_string=False), first)

    def _at_slide(self) -> bool:
        word = self._curr.text.upper()
        if closest(word, ("SLIDE",)).startswith("did") and word != "SLIDE":
            self.raise_error("expected SLIDE or ]", hint="did you mean `SLIDE`?")
        return word == "SLIDE"

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
