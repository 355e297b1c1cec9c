"""Reads names, and the columns and the watermark of a CREATE STREAM or CREATE TABLE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot.tokenizer_core import TokenType

from plait.errors import PlaitError, Span, UnsupportedError, UserError, closest
from plait.expressions.types import TIMESTAMP
from plait.language import limits
from plait.language.data_types import no_such_type, stored_type
from plait.language.dialect import PlaitParser
from plait.language.option_rules import NAME
from plait.language.statements import ColumnDeclaration, Name, Watermark


class ColumnParser(PlaitParser):
    """Goes on after an error in one column: `_errors` has them all."""

    _errors: list[PlaitError]

    def _parse_name(self, what: str) -> Name:
        token = self._curr
        if not self._match_set((TokenType.VAR, TokenType.IDENTIFIER, *self.ID_VAR_TOKENS)):
            reserved = (
                token and token.text.replace("_", "").isalnum() and token.token_type is not TokenType.STRING
            )
            self.raise_error(f"expected {what}" + (" (reserved words go in backquotes)" if reserved else ""))
        span = self.span(token)
        if not NAME.fullmatch(token.text):
            raise UserError(
                "name",
                f"`{limits.clip(token.text)}` cannot be a name",
                hint="names have letters (a to z), digits and `_`, begin with no digit, at most 128 in all",
                span=span,
            )
        if self._curr.token_type is TokenType.DOT:
            raise UserError("name", "names have no parts", hint="leave out what is before the dot", span=span)
        return Name(token.text, span)

    def _parse_columns(self, *, is_stream: bool) -> tuple[tuple[ColumnDeclaration, ...], Watermark | None]:
        """The columns and the watermark; none where one of them is in error, which is then reported."""
        first = self._curr
        if not self._match(TokenType.L_PAREN):
            self.raise_error("expected ( and the columns")
        columns: list[ColumnDeclaration] = []
        watermarks: list[Watermark] = []
        before = len(self._errors)
        while True:
            if self._match_text_seq("WATERMARK", "FOR"):
                watermarks.append(self._parse_watermark())
            else:
                try:
                    columns.append(self._parse_column_declaration())
                except UserError as error:
                    self._errors.append(error)
                    self._skip_to_comma()
            if not self._match(TokenType.COMMA):
                break
        if not self._match(TokenType.R_PAREN):
            self.raise_error("expected , or )")
        if len(self._errors) == before:
            self._check_columns(columns)
            self._check_watermarks(columns, watermarks, is_stream=is_stream, span=self.span(first))
        if len(self._errors) > before:
            return (), None
        return tuple(columns), watermarks[0] if watermarks else None

    def _parse_column_declaration(self) -> ColumnDeclaration:
        first = self._curr
        name = self._parse_name("the name of a column")
        type_token = self._curr
        node = self._parse_types(schema=True)
        if node is None:
            if self._curr.token_type is TokenType.VAR:
                self._advance()
                raise no_such_type(type_token.text, self.span(type_token))
            self.raise_error(f"expected the type of column {name.text}")
        self._mark(node, type_token)
        if self._match(TokenType.COMMENT) and not self._match(TokenType.STRING):
            self.raise_error("expected the comment as a string")
        if self._curr and self._curr.token_type not in (TokenType.COMMA, TokenType.R_PAREN):
            self._refuse_constraint()
        type_, storage = stored_type(node, self.source)
        return ColumnDeclaration(name, type_, storage, self.span(first))

    def _refuse_constraint(self) -> NoReturn:
        """NOT NULL, PRIMARY KEY, DEFAULT …: nothing checks them, so nothing pretends to."""
        first = self._curr
        if first.text.upper() not in (
            "NOT",
            "NULL",
            "PRIMARY",
            "UNIQUE",
            "DEFAULT",
            "CHECK",
            "GENERATED",
            "REFERENCES",
        ):
            self.raise_error("expected , or )")
        self._skip_to_comma()
        raise UnsupportedError(
            "column-constraint",
            "columns have a name and a type, and no constraints",
            hint="leave it out; a condition can stand in WHERE",
            span=self.span(first),
        )

    def _skip_to_comma(self) -> None:
        """To the comma or parenthesis behind a column."""
        depth = 0
        while self._curr and (depth or self._curr.token_type not in (TokenType.COMMA, TokenType.R_PAREN)):
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._curr.token_type, 0)
            self._advance()

    def _parse_watermark(self) -> Watermark:
        first = self._tokens[self._index - 2]
        column = self._parse_name("the event-time column")
        if not self._match(TokenType.ALIAS):
            self.raise_error("expected AS")
        again = self._parse_name("the event-time column again")
        if again.key != column.key:
            raise UserError(
                "watermark",
                f"the watermark for `{column.text}` is computed from `{again.text}`",
                hint=f"WATERMARK FOR {column.text} AS {column.text} - INTERVAL 10 SECONDS",
                span=again.span,
            )
        delay_us = 0
        if self._match(TokenType.DASH):
            delay_us = int(self._parse_duration_until(lambda: False, positive=False).this.name)
        return Watermark(column, delay_us, self.span(first))

    def _check_columns(self, columns: Sequence[ColumnDeclaration]) -> None:
        seen: set[str] = set()
        for column in columns:
            if column.name.key in seen:
                self._errors.append(
                    UserError(
                        "duplicate-column",
                        f"column `{column.name.text}` is declared twice",
                        hint="names that differ in case are the same",
                        span=column.name.span,
                    )
                )
            seen.add(column.name.key)

    def _check_watermarks(
        self,
        columns: Sequence[ColumnDeclaration],
        watermarks: Sequence[Watermark],
        *,
        is_stream: bool,
        span: Span,
    ) -> None:
        if not columns:
            self._errors.append(UserError("no-columns", "there are no columns", span=span))
        elif is_stream and not watermarks:
            times = [column.name.text for column in columns if column.type == TIMESTAMP]
            example = times[0] if times else "ts"
            self._errors.append(
                UserError(
                    "no-watermark",
                    "a stream needs an event time",
                    hint=f"add WATERMARK FOR {example} AS {example} - INTERVAL 10 SECONDS"
                    + ("" if times else ", and the column ts TIMESTAMP"),
                    span=span,
                )
            )
        elif not is_stream and watermarks:
            self._errors.append(
                UserError(
                    "table-watermark",
                    "a table has no watermark",
                    hint="leave it out",
                    span=watermarks[0].span,
                )
            )
        elif len(watermarks) > 1:
            self._errors.append(
                UserError("second-watermark", "a stream has one watermark", span=watermarks[1].span)
            )
        elif watermarks:
            self._check_event_time(columns, watermarks[0].column)

    def _check_event_time(self, columns: Sequence[ColumnDeclaration], name: Name) -> None:
        column = next((column for column in columns if column.name.key == name.key), None)
        if column is None:
            known = [column.name.text for column in columns]
            self._errors.append(
                UserError(
                    "unknown-column",
                    f"there is no column `{name.text}`",
                    hint=closest(name.text, known),
                    span=name.span,
                )
            )
        elif column.type != TIMESTAMP:
            self._errors.append(
                UserError(
                    "event-time-type",
                    f"the event time `{name.text}` is {column.type}, not TIMESTAMP",
                    hint=f"declare {column.name.text} TIMESTAMP",
                    span=column.span,
                )
            )
