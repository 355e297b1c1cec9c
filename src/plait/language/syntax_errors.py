"""Turns what sqlglot says about a text into a sentence a user can act on, at the right place."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from plait.errors import Source, Span, UserError, closest
from plait.language.data_types import no_such_type
from plait.language.limits import clip
from plait.language.strict_parser import QuerySyntaxError

# What may follow a part of a query that reads well.
_CLAUSES = (
    "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "JOIN", "LEFT", "RIGHT", "FULL", "INNER",
    "CROSS", "ON", "USING", "AND", "BETWEEN", "LIKE", "WHEN", "THEN", "ELSE", "FILTER", "OVER",
)  # fmt: skip
_KEYWORD = re.compile(r"[A-Z]{2,}")

_UNTERMINATED = {
    "'": "this string has no closing '",
    '"': 'this string has no closing "',
    "`": "this name has no closing `",
    "/": "this comment has no closing */",
}


def explain(problem: QuerySyntaxError, tokens: Sequence[Token], source: Source) -> UserError:
    """The error for what the parser found wrong."""
    place = problem.token or tokens[-1]
    found = f"found `{clip(problem.token.text)}`" if problem.token else "but the statement ends"
    message = problem.message
    if place.token_type is TokenType.VAR and message.startswith(("Expected TYPE", "Expected type")):
        return no_such_type(clip(place.text), Span(source, place.start, place.end + 1))
    if message.startswith(("Required argument", "Required keyword")):
        message = "expected an expression"
    elif message.startswith("Expected table name"):
        message = "expected the name of a stream, table or query"
    elif message.startswith("Failed to parse any statement"):
        message = "expected SELECT behind WITH"
    elif message.startswith(("Invalid expression", "unexpected token")):
        message = ""
    message = re.sub(r"^Expect(?:ing|ed)\b", "expected", message)
    if not message:
        text = f"unexpected `{clip(place.text)}`"
    elif message.startswith("expected"):
        text = f"{message}, {found}"
    else:
        text = message
    hint = problem.hint or _hint(problem, message, place, tokens, source)
    return UserError("syntax", text, hint=hint, span=Span(source, place.start, place.end + 1))


def next_statement(problem: QuerySyntaxError, tokens: Sequence[Token]) -> list[Token]:
    """The tokens from the place on, if a statement begins there."""
    if problem.token is None or problem.token.token_type not in (TokenType.CREATE, TokenType.DROP):
        return []
    index = _index(problem.token, tokens)
    return list(tokens[index:]) if index else []


def _index(place: Token, tokens: Sequence[Token]) -> int:
    return next(i for i, token in enumerate(tokens) if token is place)


def _hint(
    problem: QuerySyntaxError, message: str, place: Token, tokens: Sequence[Token], source: Source
) -> str:
    index = _index(place, tokens)
    if next_statement(problem, tokens):
        return "a `;` is missing before it"
    return _open_string(tokens[: index + 1], source) or _misspelt(message, index, tokens)


def _open_string(tokens: Sequence[Token], source: Source) -> str:
    """A string over several lines has often lost its end."""
    for token in tokens:
        if token.token_type is TokenType.STRING and "\n" in token.text:
            place = Span(source, token.start, token.end + 1)
            return f"the string that begins at {place} goes on to another line: is its closing quote missing?"
    return ""


def _misspelt(message: str, index: int, tokens: Sequence[Token]) -> str:
    """A keyword that could stand at the place, or just before it, if what stands there is close to it."""
    words = [tokens[index]]
    expected: Sequence[str] = _KEYWORD.findall(message)
    if not expected and any(token.token_type is TokenType.SELECT for token in tokens[:index]):
        expected = _CLAUSES
        words.append(tokens[index - 1])  # it may have been taken for an alias
    for word in words:
        if word.token_type is TokenType.VAR and word.text.upper() not in expected:
            hint = closest(word.text.upper(), expected)
            if hint.startswith("did"):
                return hint
    return ""


def unreadable_text(dialect: Dialect, source: Source) -> tuple[list[Token], UserError | None]:
    """The tokens of a text, and what is wrong where it cannot be cut into tokens to the end."""
    tokenizer = dialect.tokenizer()
    try:
        return tokenizer.tokenize(source.text), None
    except TokenError as error:
        core = tokenizer._core  # the only one who knows where the token began
        start = core._start
        message = _UNTERMINATED.get(source.text[start : start + 1])
        if message is None:
            message = f"this cannot be read: {error.__cause__ or 'unknown characters'}"
        hint = _open_string(tokenizer.tokens, source)
        return tokenizer.tokens, UserError(
            "unreadable", message, hint=hint, span=Span(source, start, start + 1)
        )
