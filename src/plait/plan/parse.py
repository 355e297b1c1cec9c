"""Reads back what `format` prints, strictly: anything else is an error with its line and column."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TypeVar

from plait.errors import Source, Span, UserError
from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import Call, Column, Edge, Expression, Literal, WindowEdge
from plait.expressions.types import BOOLEAN, INT, STRING, Kind, Type, parse_type
from plait.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    RangeWindow,
    RowWindow,
    SortKey,
    StreamScan,
    TableScan,
    TickWindow,
    Top,
    Union,
    Window,
    WindowSpecification,
)
from plait.plan.notation import FUNCTIONS_BY_OPERATOR, UNITS_US, unquoted_name, unquoted_string

T = TypeVar("T")

_TOKEN = re.compile(
    r"""
      (?P<space>[ ]+)
    | (?P<literal>'(?:[^'\\]|\\u\{[0-9a-f]{1,6}\}|\\['\\])*'
        | (?:-?[0-9][0-9.eE+-]*|(?:null|true|false|nan|-?inf)(?![A-Za-z0-9_\#]))
          (?: :[A-Z]+(?:\([0-9]+,[0-9]+\))? )?)
    | (?P<column>(?:[A-Za-z_][A-Za-z0-9_]*|`(?:[^`\\]|\\u\{[0-9a-f]{1,6}\}|\\[`\\])*`)?\#[0-9]+)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*|`(?:[^`\\]|\\u\{[0-9a-f]{1,6}\}|\\[`\\])*`)
    | (?P<symbol>:=|<=|<>|>=|[()\[\],:=<>+\-*/])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int


def parse_plans(text: str, name: str = "<plan>") -> dict[str, Node]:
    """The plans of a text that `format_plans` wrote, by name.

    >>> parse_plans("r0 := scan s [x INT]\\nq = r0\\n")["q"].columns
    (Field(name='x', type=Type(kind=<Kind.INT: 'INT'>, precision=0, scale=0)),)
    """
    source = Source(name, text)
    nodes: dict[str, Node] = {}
    roots: dict[str, Node] = {}
    start = 0
    for line in text.split("\n"):
        if line:
            parser = _LineParser(source, start, start + len(line), nodes)
            target, is_root = parser.target()
            known: dict[str, Node] = roots if is_root else nodes
            if target.text in known:
                raise parser.error(target, f"`{target.text}` is there twice")
            known[target.text] = parser.reference() if is_root else parser.node()
            parser.end()
        start += len(line) + 1
    return {unquoted_name(target): node for target, node in roots.items()}


class _LineParser:
    """Recursive descent over the tokens of one line."""

    def __init__(self, source: Source, start: int, end: int, nodes: Mapping[str, Node]) -> None:
        self.source = source
        self.nodes = nodes
        self.tokens = self._tokens(start, end)
        self.position = 0
        self.types: tuple[Type, ...] = ()  # of the columns that expressions of this line can see

    def _tokens(self, start: int, end: int) -> list[_Token]:
        tokens = []
        while start < end:
            match = _TOKEN.match(self.source.text, start, end)
            if match is None:
                raise self.error(_Token("?", self.source.text[start], start), "no such sign in a plan")
            if match.lastgroup != "space":
                assert match.lastgroup is not None
                tokens.append(_Token(match.lastgroup, match[0], start))
            start = match.end()
        tokens.append(_Token("end", "", end))
        return tokens

    def error(self, token: _Token, message: str) -> UserError:
        span = Span(self.source, token.start, token.start + max(1, len(token.text)))
        return UserError("plan-text", message, span=span)

    def peek(self) -> _Token:
        return self.tokens[self.position]

    def take(self, kind: str, expected: str) -> _Token:
        token = self.peek()
        if token.kind != kind:
            raise self.error(token, f"expected {expected}, found {token.text or 'the end of the line'}")
        self.position += 1
        return token

    def accept(self, text: str) -> bool:
        if self.peek().text != text or self.peek().kind not in ("word", "symbol"):
            return False
        self.position += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(
                self.peek(), f"expected `{text}`, found {self.peek().text or 'the end of the line'}"
            )

    def end(self) -> None:
        if self.peek().kind != "end":
            raise self.error(self.peek(), f"`{self.peek().text}` is too much")

    def separated(self, item: Callable[[], T]) -> tuple[T, ...]:
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    def target(self) -> tuple[_Token, bool]:
        token = self.take("word", "a name")
        is_root = self.accept("=")
        if not is_root:
            self.expect(":=")
        return token, is_root

    def reference(self) -> Node:
        token = self.take("word", "a node")
        if token.text not in self.nodes:
            raise self.error(token, f"`{token.text}` is not defined before its use")
        return self.nodes[token.text]

    def node(self) -> Node:
        operator = self.take("word", "an operator")
        match operator.text:
            case "scan" | "table":
                source = unquoted_name(self.take("word", "a source").text)
                fields = self.fields()
                return StreamScan(source, fields) if operator.text == "scan" else TableScan(source, fields)
            case "union":
                inputs = self.separated(self.reference)
                return self.built(operator, lambda: Union(inputs))
            case "join":
                inputs = self.separated(self.reference)
                predicate = self.predicate(inputs)
                return self.built(operator, lambda: Join(inputs, predicate))
            case "left" | "right" | "full":
                self.expect("join")
                left = self.reference()
                self.expect(",")
                right = self.reference()
                predicate = self.predicate((left, right))
                outer = OuterKind(operator.text)
                return self.built(operator, lambda: OuterJoin(outer, left, right, predicate))
            case "window" | "filter" | "project" | "aggregate" | "top":
                return self.unary(operator)
            case _:
                raise self.error(operator, f"there is no operator `{operator.text}`")

    def unary(self, operator: _Token) -> Node:
        child = self.reference()
        self.types = child.types
        if operator.text == "aggregate":
            keys = self.separated(self.expression) if self.accept("by") else ()
            self.expect(":")
            calls = () if self.peek().kind == "end" else self.separated(self.aggregate_call)
            return self.built(operator, lambda: Aggregate(child, keys, calls))
        self.expect(":")
        match operator.text:
            case "window":
                window = self.window()
                return self.built(operator, lambda: Window(child, window))
            case "filter":
                predicate = self.expression()
                return self.built(operator, lambda: Filter(child, predicate))
            case "project":
                expressions = () if self.peek().kind == "end" else self.separated(self.expression)
                return self.built(operator, lambda: Project(child, expressions))
            case _:
                count = self.integer()
                self.expect("by")
                order = self.separated(self.sort_key)
                return self.built(operator, lambda: Top(child, order, count))

    def built(self, token: _Token, build: Callable[[], T]) -> T:
        """What `build` makes; a node or call that cannot be built is an error at `token`."""
        try:
            return build()
        except ValueError as error:
            raise self.error(token, str(error)) from error

    def predicate(self, inputs: Sequence[Node]) -> Expression:
        self.types = tuple(type_ for node in inputs for type_ in node.types)
        self.expect(":")
        return self.expression()

    def fields(self) -> tuple[Field, ...]:
        self.expect("[")
        if self.accept("]"):
            return ()
        fields = self.separated(lambda: Field(unquoted_name(self.take("word", "a column").text), self.type()))
        self.expect("]")
        return fields

    def type(self) -> Type:
        token = self.take("word", "a type")
        text = token.text
        if self.accept("("):
            precision = self.integer()
            self.expect(",")
            text = f"{text}({precision},{self.integer()})"
            self.expect(")")
        return self.built(token, lambda: parse_type(text))

    def integer(self) -> int:
        token = self.take("literal", "a number")
        if not token.text.isdecimal():
            raise self.error(token, f"`{token.text}` is no whole number")
        return int(token.text)

    def duration(self) -> int:
        number = self.integer()
        unit = self.take("word", "a unit")
        if unit.text not in UNITS_US:
            raise self.error(unit, f"there is no unit `{unit.text}`")
        return number * UNITS_US[unit.text]

    def window(self) -> WindowSpecification:
        start = self.take("word", "`range` or `rows`")
        if start.text == "rows":
            rows = self.integer()
            self.expect("slide")
            slide_rows = self.integer()
            partition = self.separated(self.column) if self.accept("partition") else ()
            return self.built(
                start, lambda: RowWindow(rows, slide_rows, tuple(column.index for column in partition))
            )
        if start.text != "range":
            raise self.error(start, f"there is no window by `{start.text}`")
        range_us = self.duration()
        if not self.accept("slide"):
            return self.built(start, lambda: RangeWindow(range_us))
        slide_us = self.duration()
        offset_us = self.duration() if self.accept("offset") else 0
        return self.built(start, lambda: TickWindow(range_us, slide_us, offset_us))

    def aggregate_call(self) -> AggregateCall:
        function = self.take("word", "an aggregate")
        arguments = self.arguments()
        condition = self.expression() if self.accept("where") else None
        return self.built(function, lambda: AggregateCall(function.text, arguments, condition))

    def sort_key(self) -> SortKey:
        expression = self.expression()
        descending = self.accept("desc")
        if not descending:
            self.expect("asc")
        self.expect("nulls")
        nulls_first = self.accept("first")
        if not nulls_first:
            self.expect("last")
        return SortKey(expression, descending, nulls_first)

    def arguments(self) -> tuple[Expression, ...]:
        self.expect("(")
        if self.accept(")"):
            return ()
        arguments = self.separated(self.expression)
        self.expect(")")
        return arguments

    def column(self) -> Column:
        token = self.take("column", "a column")
        index = int(token.text.rpartition("#")[2])
        if index >= len(self.types):
            raise self.error(token, f"there is no column {index}")
        return Column(index, self.types[index])

    def expression(self) -> Expression:
        token = self.peek()
        match token.kind:
            case "column":
                return self.column()
            case "literal":
                self.position += 1
                return self.built(token, lambda: _literal(token.text))
            case "word":
                self.position += 1
                if token.text in (Edge.START.value, Edge.END.value):
                    return WindowEdge(Edge(token.text))
                return self.call(token)
            case _:
                self.expect("(")
                return self.operation()

    def operation(self) -> Expression:
        operands = [self.expression()]
        operator = self.peek()
        function = FUNCTIONS_BY_OPERATOR.get(operator.text)
        if function is None:
            raise self.error(operator, "expected an operator")
        while self.accept(operator.text):
            operands.append(self.expression())
        self.expect(")")
        return self.built(operator, lambda: Call(function, tuple(operands)))

    def call(self, function: _Token) -> Expression:
        self.expect("(")
        if self.accept(")"):
            return self.built(function, lambda: Call(function.text, ()))
        arguments = self.separated(self.expression)
        to = self.type() if self.accept("as") else None
        self.expect(")")
        return self.built(function, lambda: Call(function.text, arguments, to))


def _literal(text: str) -> Literal:
    if text.startswith("'"):
        return Literal(unquoted_string(text), STRING)
    value, _, type_text = text.partition(":")
    if not type_text:
        return Literal(value == "true", BOOLEAN) if value in ("true", "false") else Literal(int(value), INT)
    type_ = parse_type(type_text)
    if value == "null":
        return Literal(None, type_)
    match type_.kind:
        case Kind.DOUBLE:
            return Literal(float(value), type_)
        case Kind.DECIMAL:
            return Literal(_decimal(value), type_)
        case Kind.DATE:
            return Literal(date.fromisoformat(value), type_)
        case _:
            return Literal(int(value), type_)


def _decimal(text: str) -> Decimal:
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        raise ValueError(f"`{text}` is no decimal number")
    return Decimal(text)
