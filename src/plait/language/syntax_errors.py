"""Turns what sqlglot says about a text into a sentence a user can act on, at the right place."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from plait.errors import Source, Span, UserError, closest
from plait.language.limits import clip
from plait.language.strict_parser import QuerySyntaxError

# fmt: off
KEYWORDS = frozenset({
    "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "JOIN", "LEFT",
    "RIGHT", "FULL", "OUTER", "INNER", "CROSS", "DISTINCT", "BETWEEN", "LIKE", "WITH", "RANGE",
    "ROWS", "SLIDE", "PARTITION", "INTERVAL", "MINUTES", "SECONDS", "HOURS", "CREATE", "STREAM",
    "TABLE", "SITE", "CONTINUOUS", "QUERY", "WATERMARK", "INTO", "CASE", "WHEN", "THEN", "ELSE",
    "FILTER",
})
# fmt: on
_WORD = re.compile(r"[A-Za-z_]{3,}")

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
    return UserError(
        "syntax", text, hint=_misspelt(place, tokens), span=Span(source, place.start, place.end + 1)
    )


def _misspelt(place: Token, tokens: Sequence[Token]) -> str:
    """A keyword that the word at the place, or the one before it, is close to."""
    index = next((i for i, token in enumerate(tokens) if token is place), 0)
    for token in (place, tokens[index - 1] if index else place):
        if (
            token.token_type is TokenType.VAR
            and _WORD.fullmatch(token.text)
            and token.text.upper() not in KEYWORDS
        ):
            hint = closest(token.text.upper(), KEYWORDS)
            if hint:
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
        return tokenizer.tokens, UserError("unreadable", message, span=Span(source, start, start + 1))
