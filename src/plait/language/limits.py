"""What a text may be before it is parsed: readable, of bounded size and depth, without hidden characters.

Decides the bounds. sqlglot's parser is recursive (about twenty frames a parenthesis) and takes some seconds a
megabyte, so texts and single statements are bounded here, on bytes and tokens, where that costs little. Code
after the parser may rely on `MAX_TREE_DEPTH`, and flattens chains of AND, OR, || and UNION without recursion.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from plait.errors import Source, Span, UnsupportedError, UserError
from plait.language.spans import span_of

MAX_SOURCE_BYTES = 8_000_000
MAX_SOURCE_TOKENS = 2_000_000
MAX_STATEMENTS = 50_000
MAX_STATEMENT_TOKENS = 20_000
MAX_ERRORS = 200
MAX_DEPTH = 50
MAX_TREE_DEPTH = 150
MAX_NAME_LENGTH = 128
MAX_NUMBER_LENGTH = 400  # beyond the digits of every number there is, and within those that Python reads

# Control characters, and those that make text look other than it is (Unicode's bidirectional controls).
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)

_TYPOGRAPHIC_QUOTES = re.compile("[\u2018-\u201f\u00ab\u00bb\u2032\u2033]")
_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")

_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSING = {TokenType.R_PAREN: TokenType.L_PAREN, TokenType.R_BRACKET: TokenType.L_BRACKET}
_UNARY = frozenset({TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.INTERVAL})
_REFUSED = {
    TokenType.HINT: ("optimizer hints", "leave the hint out: the planner decides"),
    TokenType.L_BRACE: ("braces", "a variable of the environment goes inside a string: '${NAME}'"),
    TokenType.PIPE_GT: ("the pipe syntax |>", "write SELECT … FROM …"),
}
# Long chains of these are flat lists to whoever reads the tree.
_FLAT = (exp.And, exp.Or, exp.SetOperation, exp.DPipe)


def clip(text: str) -> str:
    """A text short enough to be quoted in a message, on one line, with nothing invisible in it."""
    line = " ".join(text[:200].split())
    shown = "".join(sign if sign.isprintable() else f"U+{ord(sign):04X}" for sign in line)
    return shown if len(shown) <= 40 else shown[:39] + "…"


def read_source(path: Path) -> Source:
    """The text of a file: UTF-8, with or without a byte order mark."""
    name = str(path)
    try:
        if path.is_dir():
            raise UserError("source-file", f"{name} is a folder", hint="name the SQL files in it")
        if path.exists() and not path.is_file():  # a pipe may never end, a device neither
            raise UserError(
                "source-file", f"{name} is neither a file nor a folder", hint="… | plait check - reads a pipe"
            )
        with path.open("rb") as file:  # what is still being written has no size yet
            content = file.read(MAX_SOURCE_BYTES + 1)
        if len(content) > MAX_SOURCE_BYTES:
            raise _too_large(name)
    except FileNotFoundError:
        raise UserError("source-file", f"there is no file {name}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError("source-file", f"{name} cannot be read: {reason}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            "source-encoding",
            f"{name} is not a UTF-8 text: byte {error.start} (line {line}) is {content[error.start]:#04x}",
            hint="save the file as UTF-8",
        ) from None
    return Source(name, text)


def _too_large(name: str) -> UserError:
    return UserError(
        "source-size",
        f"{name} is larger than {MAX_SOURCE_BYTES / 1e6:.0f} MB",
        hint="split it into several files",
    )


def check_text(source: Source) -> Iterator[UserError]:
    """What makes a text unfit to be read at all."""
    if len(source.text) > MAX_SOURCE_BYTES:
        yield _too_large(source.name)
        return
    yield from _check_amount(source)
    hidden = _HIDDEN.search(source.text)
    if hidden:
        yield UserError(
            "hidden-character",
            f"the text has the hidden character U+{ord(hidden[0]):04X}",
            hint="delete it",
            span=Span(source, hidden.start(), hidden.end()),
        )


def _check_amount(source: Source) -> Iterator[UserError]:
    """Count words and signs roughly: cutting a text into tokens takes a minute for some millions."""
    if source.text.count(";") > MAX_STATEMENTS or _has_more_words(source.text, MAX_SOURCE_TOKENS):
        yield UserError(
            "source-size",
            f"{source.name} has more than {MAX_STATEMENTS:,} statements or {MAX_SOURCE_TOKENS:,} words",
            hint="split it into several files",
        )
        return
    start = 0
    for part in source.text.split(";"):
        if _has_more_words(part, MAX_STATEMENT_TOKENS):
            first = start + len(part) - len(part.lstrip())
            yield UserError(
                "statement-size",
                f"this statement has more than {MAX_STATEMENT_TOKENS:,} words and signs",
                hint="put long lists into a table and join it",
                span=Span(source, first, first + 1),
            )
        start += len(part) + 1


def _has_more_words(text: str, most: int) -> bool:
    return len(text) > most and next(islice(_WORD_OR_SIGN.finditer(text), most, None), None) is not None


def check_tokens(tokens: Sequence[Token], source: Source) -> None:
    """Raise for a statement that is too deep, or whose brackets do not match."""
    open_brackets: list[Token] = []
    cases = unary = 0
    for token in tokens:
        kind = token.token_type
        if kind in _UNARY:
            unary += 1
        else:
            unary = 0
            if kind in _OPENING:
                open_brackets.append(token)
            elif kind in _CLOSING:
                if not open_brackets or open_brackets.pop().token_type is not _CLOSING[kind]:
                    raise UserError(
                        "brackets", f"this `{token.text}` closes nothing", span=_span(token, source)
                    )
            elif kind is TokenType.CASE:
                cases += 1
            elif kind is TokenType.END:
                cases = max(0, cases - 1)
            elif kind is TokenType.IDENTIFIER or kind is TokenType.VAR:
                _check_word(token, source)
            elif kind is TokenType.NUMBER:
                _check_number(token, source)
            elif kind in _REFUSED:
                construct, hint = _REFUSED[kind]
                raise UnsupportedError(
                    "unsupported-syntax",
                    f"Plait does not support {construct}",
                    hint=hint,
                    span=_span(token, source),
                )
        if len(open_brackets) + cases + unary > MAX_DEPTH:
            raise too_deep(_span(token, source))
    if open_brackets:
        last = open_brackets[-1]
        raise UserError("brackets", f"this `{last.text}` is never closed", span=_span(last, source))


def _check_number(token: Token, source: Source) -> None:
    text = token.text
    if not text.isascii():
        problem, hint = "this number has digits other than 0 to 9", "write it with those"
    elif len(text) > MAX_NUMBER_LENGTH:
        problem = f"this number has {len(text):,} digits and signs"
        hint = f"write it with at most {MAX_NUMBER_LENGTH}"
    else:
        return
    raise UserError("number", problem, hint=hint, span=_span(token, source))


def _check_word(token: Token, source: Source) -> None:
    text = token.text
    if not 0 < len(text) <= MAX_NAME_LENGTH:
        raise UserError(
            "name",
            f"the name `{clip(text)}` has {len(text)} characters",
            hint=f"names have 1 to {MAX_NAME_LENGTH}",
            span=_span(token, source),
        )
    if text.isascii():
        return
    if any(unicodedata.category(sign) == "Cf" for sign in text):
        raise UserError(
            "hidden-character",
            f"the name {clip(text)} has a character that does not show",
            hint="delete it",
            span=_span(token, source),
        )
    if token.token_type is TokenType.VAR and _TYPOGRAPHIC_QUOTES.search(text):
        raise UserError(
            "quotation-marks",
            "these are no quotation marks of SQL",
            hint="use '…'",
            span=_span(token, source),
        )


def check_tree(tree: exp.Expr, source: Source) -> None:
    """Raise for operators nested deeper than `MAX_TREE_DEPTH`; a chain of AND, OR, || or UNION is one level.

    Parentheses are bounded already; `a + a + a …` nests without any.
    """
    pending: list[tuple[exp.Expr, int]] = [(tree, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_TREE_DEPTH:
            raise too_deep(span_of(node, source))
        for child in node.iter_expressions():
            nests = isinstance(child, (exp.Condition, exp.Query)) and not (
                isinstance(child, _FLAT) and type(child) is type(node)
            )
            pending.append((child, depth + nests))


def too_deep(span: Span) -> UserError:
    return UserError(
        "depth",
        "this is nested too deeply",
        hint="name a part of it in WITH, or make it a query of its own",
        span=span,
    )


def _span(token: Token, source: Source) -> Span:
    return Span(source, token.start, token.end + 1)
