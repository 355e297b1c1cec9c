"""Reads the statements of a source: the DDL around the queries.

Decides what can stand at the top level. Extends the dialect's parser, so that types, queries and durations
are read by the same code wherever they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from plait.catalog import SinkKind
from plait.errors import PlaitError, Source, Span, UnsupportedError, UserError, closest
from plait.language import limits, option_rules
from plait.language.column_parser import ColumnParser
from plait.language.dialect import Plait
from plait.language.option_rules import OptionRules
from plait.language.options import Option, WrittenOption, read_options
from plait.language.quantities import QuantityError
from plait.language.statements import (
    CreateLink,
    CreateQuery,
    CreateSite,
    CreateStream,
    CreateTable,
    Drop,
    Name,
    ResultFolder,
    Statement,
    Unreadable,
)
from plait.language.strict_parser import QuerySyntaxError
from plait.language.syntax_errors import explain, next_statement, unreadable_text
from plait.recursion import deeper_recursion

KINDS = ("STREAM", "TABLE", "SITE", "LINK", "CONTINUOUS QUERY")
STATEMENTS = "CREATE STREAM, TABLE, SITE, LINK or CONTINUOUS QUERY, and DROP"

_QUERY_WORDS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "("})


def parse_source(source: Source) -> tuple[list[Statement], list[PlaitError]]:
    """The statements of a source, and every error found in it."""
    errors: list[PlaitError] = [*limits.check_text(source)]
    if errors:
        return [], errors
    statements: list[Statement] = []
    tokens, problem = unreadable_text(Plait(), source)
    parser = StatementParser(dialect=Plait())
    parser.source = source
    with deeper_recursion():
        for part in _split(tokens, unfinished=problem is not None):
            while part and len(errors) < limits.MAX_ERRORS:
                statement, found, part = parser.read(part)
                errors += found
                if statement is not None:
                    statements.append(statement)
            if len(errors) >= limits.MAX_ERRORS:
                errors.append(
                    UserError("too-many-errors", f"{source.name} is read no further: it has too many errors")
                )
                break
    return statements, errors + ([problem] if problem else [])


def _split(tokens: Sequence[Token], *, unfinished: bool) -> Iterator[list[Token]]:
    """The tokens between semicolons, without the last part where the text breaks off in it."""
    part: list[Token] = []
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            part.append(token)
        elif part:
            yield part
            part = []
    if part and not unfinished:
        yield part


class StatementParser(ColumnParser):
    """Reads one statement after the other."""

    _declares: tuple[str, Name] | None

    def read(self, tokens: list[Token]) -> tuple[Statement | None, list[PlaitError], list[Token]]:
        """The statement, and all errors in it: a CREATE with errors is at least known by its name.

        The last are the tokens of a further statement, where a semicolon is missing before it.
        """
        self._start(tokens)
        whole = Span(self.source, tokens[0].start, tokens[-1].end + 1)
        statement: Statement | None = None
        rest: list[Token] = []
        try:
            statement = self._parse_any_statement(tokens, whole)
            if self._curr:
                self.raise_error("unexpected token")
        except QuerySyntaxError as error:
            statement = None
            self._errors.append(explain(error, tokens, self.source))
            rest = next_statement(error, tokens)
        except UserError as error:
            statement = None
            self._errors.append(error.at(whole))
        except RecursionError:  # what the limits on tokens do not foresee
            statement = None
            self._errors.append(limits.too_deep(whole))
        if statement is None:
            declared = self._declares or self._declared_by(tokens)
            statement = declared and Unreadable(*declared, whole)
        return statement, self._errors, rest

    def _start(self, tokens: list[Token]) -> None:
        self.reset()
        self.sql = self.source.text
        self._errors = []
        self._declares = None
        self._chunks = [tokens]
        self._advance_chunk()

    def _declared_by(self, tokens: list[Token]) -> tuple[str, Name] | None:
        """What the head of a statement declares whose rest is not fit to be parsed."""
        errors = self._errors
        self._start(tokens[:4])  # CREATE CONTINUOUS QUERY name
        try:
            if self._match(TokenType.CREATE) and (kind := self._parse_kind()) != "link":
                self._parse_declared_name(kind)
        except (QuerySyntaxError, UserError):
            pass  # what is wrong is reported already
        self._errors = errors
        return self._declares

    def _parse_any_statement(self, tokens: list[Token], whole: Span) -> Statement | None:
        first = self._curr
        if first.token_type in (TokenType.CREATE, TokenType.DROP):
            limits.check_tokens(tokens, self.source)
            self._advance()
            return (
                self._parse_definition(whole)
                if first.token_type is TokenType.CREATE
                else self._parse_removal(whole)
            )
        word = first.text.upper()
        span = self.span(first, first)
        if word in _QUERY_WORDS:
            raise UserError(
                "bare-query",
                "a query needs a name",
                hint="CREATE CONTINUOUS QUERY name AS SELECT …",
                span=span,
            )
        suggestion = closest(word, ("CREATE", "DROP"))
        if suggestion.startswith("did"):
            raise UserError("statement", f"there is no statement {first.text}", hint=suggestion, span=span)
        raise UnsupportedError(
            "statement",
            f"`{limits.clip(first.text)}` begins no statement of Plait",
            hint=f"there is {STATEMENTS}",
            span=span,
        )

    # CREATE

    def _parse_definition(self, whole: Span) -> Statement | None:
        if self._match_pair(TokenType.OR, TokenType.REPLACE):
            raise UnsupportedError(
                "or-replace",
                "CREATE OR REPLACE is not supported",
                hint="DROP the old one first",
                span=self.span(self._tokens[self._index - 2]),
            )
        match self._parse_kind():
            case "stream":
                return self._parse_stream_definition(whole)
            case "table":
                return self._parse_table_definition(whole)
            case "site":
                name = self._parse_declared_name("site")
                return CreateSite(name, self._parse_options(option_rules.SITE_OPTIONS), whole)
            case "link":
                source, target = self._parse_link_ends()
                return CreateLink(source, target, self._parse_options(option_rules.LINK_OPTIONS), whole)
            case _:
                return self._parse_query_definition(whole)

    def _parse_kind(self) -> str:
        for kind in ("STREAM", "TABLE", "SITE", "LINK", "QUERY"):
            if self._match_text_seq("CONTINUOUS", kind) if kind == "QUERY" else self._match_text_seq(kind):
                return kind.lower()
        if not self._curr:
            self.raise_error(f"expected {', '.join(KINDS[:-1])} or {KINDS[-1]}")
        word = self._curr.text.upper()
        span = self.span(self._curr, self._curr)
        if word in ("VIEW", "MATERIALIZED", "QUERY", "CONTINUOUS"):
            raise UnsupportedError(
                "statement",
                f"{word} cannot stand here",
                hint="a query is made by CREATE CONTINUOUS QUERY name AS SELECT …",
                span=span,
            )
        suggestion = closest(word, ("STREAM", "TABLE", "SITE", "LINK", "CONTINUOUS QUERY"))
        hint = suggestion if suggestion.startswith("did") else f"there is {STATEMENTS}"
        raise UserError(
            "statement",
            f"`{limits.clip(word)}` is nothing that can be created or dropped",
            hint=hint,
            span=span,
        )

    def _parse_declared_name(self, kind: str) -> Name:
        if self._match_text_seq("IF", "NOT", "EXISTS"):
            raise UnsupportedError(
                "if-not-exists",
                "IF NOT EXISTS is not supported: a name is declared once",
                hint="leave it out",
                span=self.span(self._tokens[self._index - 3]),
            )
        name = self._parse_name(f"the name of the {kind}")
        self._declares = (kind, name)
        return name

    def _parse_link_ends(self) -> tuple[Name, Name]:
        if self._match(TokenType.FROM, advance=False):
            self.raise_error("expected the site where the link begins", hint="leave FROM out: `a TO b`")
        source = self._parse_name("the site where the link begins")
        if not self._match_text_seq("TO"):
            self.raise_error("expected TO")
        return source, self._parse_name("the site where the link ends")

    def _parse_stream_definition(self, whole: Span) -> CreateStream | None:
        name = self._parse_declared_name("stream")
        columns, watermark = self._parse_columns(is_stream=True)
        read = self._parse_options(option_rules.STREAM_OPTIONS)
        if watermark is None or not columns:
            return None
        return CreateStream(name, columns, watermark, read, whole)

    def _parse_table_definition(self, whole: Span) -> CreateTable | None:
        name = self._parse_declared_name("table")
        columns, _ = self._parse_columns(is_stream=False)
        read = self._parse_options(option_rules.TABLE_OPTIONS)
        return CreateTable(name, columns, read, whole) if columns else None

    # Options

    def _parse_options(self, rules: OptionRules) -> tuple[Option, ...]:
        written: list[WrittenOption] = []
        if self._match(TokenType.WITH):
            if not self._match(TokenType.L_PAREN):
                self.raise_error("expected ( and the options")
            while not self._match(TokenType.R_PAREN):
                written.append(self._parse_option())
                if not self._match(TokenType.COMMA):
                    if not self._match(TokenType.R_PAREN):
                        self._refuse_after_option()
                    break
        read, errors = read_options(rules, written)
        self._errors += errors
        return read

    def _refuse_after_option(self) -> NoReturn:
        if self._next.token_type in (TokenType.EQ, TokenType.DOT):
            hint = "a comma is missing before it"
        else:
            hint = "a value with a unit goes in quotes: '5 s'"
        self.raise_error("expected , or )", hint=hint)

    def _parse_option(self) -> WrittenOption:
        first = self._curr
        parts: list[str] = []
        while self._curr and self._curr.token_type not in (TokenType.EQ, TokenType.COMMA, TokenType.R_PAREN):
            parts.append(self._as_written(self._curr))
            self._advance()
        if not parts:
            self.raise_error("expected an option such as rate = 5")
        key_span = self.span(first)
        if not self._match(TokenType.EQ):
            self.raise_error("expected = and a value")
        value = self._curr
        is_string = self._match(TokenType.STRING)
        if not is_string:
            self._match_set((TokenType.DASH, TokenType.PLUS))
            if not self._match_set((TokenType.NUMBER, TokenType.TRUE, TokenType.FALSE)):
                self.raise_error("expected a number, true, false, or a text in quotes")
        span = self.span(value)
        text = value.text if is_string else self.sql[span.start : span.end]
        return WrittenOption("".join(parts), key_span, text, is_string, span)

    def _as_written(self, token: Token) -> str:
        """The tokenizer puts what is also a keyword into capitals."""
        written = self._find_sql(token, token)
        return written if written.upper() == token.text else token.text

    # Queries

    def _parse_query_definition(self, whole: Span) -> CreateQuery:
        name = self._parse_declared_name("query")
        site = self._parse_name("the site that wants the results") if self._match_text_seq("AT") else None
        folder = self._parse_folder() if self._match(TokenType.INTO) else None
        has_options = self._at_options()
        read = self._parse_options(option_rules.QUERY_OPTIONS) if has_options else ()
        self._check_sink(folder, read)
        if not self._match(TokenType.ALIAS):
            parts = ("AT", "INTO", "WITH")
            self._refuse_head(parts[3 if has_options else 2 if folder else 1 if site else 0 :])
        first = self._curr
        select = self._parse_ddl_select()
        if not isinstance(select, exp.Query):
            self.raise_error("expected SELECT or WITH", first)
        if self._curr:
            self.raise_error("unexpected token")
        self._mark(select, first)
        if self._tokens_size > limits.MAX_TREE_DEPTH:
            limits.check_tree(select, self.source)
        return CreateQuery(name, site, folder, read, select, self.source, whole)

    def _at_options(self) -> bool:
        """Whether options stand here, and not a query's own WITH."""
        return bool(self._match(TokenType.WITH, advance=False) and self._next.token_type is TokenType.L_PAREN)

    def _refuse_head(self, still_to_come: Sequence[str]) -> NoReturn:
        """Something else than AS behind the name, site, folder and options of a query."""
        hint = ""
        for word, follower in (("AT", "INTO"), ("INTO", "WITH")):
            if self._match_text_seq(word, advance=False) and word not in still_to_come:
                hint = f"{word} goes before {follower}"
        if self._at_options() and not still_to_come:
            hint = "write all options in one WITH (…)"
        self.raise_error(f"expected {' or '.join(filter(None, (', '.join(still_to_come), 'AS')))}", hint=hint)

    def _parse_folder(self) -> ResultFolder:
        token = self._curr
        if not self._match(TokenType.STRING):
            self.raise_error("expected the folder of the results as a string")
        span = self.span(token)
        try:
            path = option_rules.check_path(token.text)
        except QuantityError as error:
            raise UserError("sink-path", error.message, hint=error.hint, span=span) from None
        if "${" in path:
            raise UserError(
                "sink-path",
                "a folder for results does not come from the environment",
                hint="write the path",
                span=span,
            )
        return ResultFolder(path, span)

    def _check_sink(self, folder: ResultFolder | None, read: Sequence[Option]) -> None:
        kind = next(
            (SinkKind(str(option.value)) for option in read if option.key == "sink"), SinkKind.PARQUET
        )
        if folder is None or kind.writes_files:
            return
        hint = f"write path = '{limits.clip(folder.path)}' into WITH (…)" if kind is SinkKind.SPARK else ""
        self._errors.append(
            UserError(
                "sink-path",
                f"sink '{kind}' takes no folder",
                hint=hint or "leave INTO out",
                span=folder.span,
            )
        )

    # DROP

    def _parse_removal(self, whole: Span) -> Drop:
        kind = "query" if self._match_text_seq("QUERY") else self._parse_kind()
        if_exists = self._match_text_seq("IF", "EXISTS")
        if kind == "link":
            source, target = self._parse_link_ends()
            return Drop(kind, source, target, if_exists, whole)
        return Drop(kind, self._parse_name(f"the name of the {kind}"), None, if_exists, whole)
