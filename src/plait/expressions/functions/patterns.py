"""Patterns of LIKE and regular expressions that mean the same to every engine.

Spark matches regular expressions with Java, DuckDB with RE2. We accept the syntax both share and rewrite
the parts where equal signs mean different things: `.` is any character but a newline, `$` is the very end
of the text, `\\s` is `[ \\t\\n\\x0B\\f\\r]`, and `\\d \\w` are ASCII. Look-around, back references, flags,
`\\b`, Unicode classes, possessive quantifiers and repeated groups that can be empty are refused: there the
two differ. Patterns are constants, so all of this is checked before anything runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from plait.expressions.functions.definition import FunctionTypeError

_SPACES = r" \t\n\x0B\f\r"
_SAME_ESCAPES = frozenset("dDwWtnrf")
_PUNCTUATION = frozenset(r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~""")
_QUANTIFIER = re.compile(r"[*+?]|\{(\d{1,4})(,(\d{1,4})?)?\}")
_MAX_PATTERN_CHARACTERS = 1000
# RE2 refuses patterns that grow too large once their counted repeats are written out.
_MAX_WRITTEN_OUT = 1000


def check_like(pattern: str) -> None:
    r"""Refuse a LIKE pattern in which a backslash stands before anything but `%`, `_` or itself.

    >>> check_like(r"50\% of _%")
    """
    if re.fullmatch(r"(?:[^\\]|\\[%_\\])*", pattern, re.DOTALL) is None:
        raise FunctionTypeError(
            f"in the LIKE pattern {pattern!r} a backslash escapes something else than % _ or \\",
            "write \\\\ for a backslash itself",
        )


@dataclass(frozen=True)
class RegularExpression:
    """A pattern both engines read alike."""

    text: str
    groups: int
    can_be_empty: bool


@lru_cache(maxsize=4096)
def regular_expression(pattern: str) -> RegularExpression:
    r"""Check a pattern and write it so that both engines agree.

    >>> regular_expression("a.c$").text
    'a[^\\n]c\\z'
    """
    if len(pattern) > _MAX_PATTERN_CHARACTERS:
        raise FunctionTypeError(f"a regular expression may have {_MAX_PATTERN_CHARACTERS} characters at most")
    return _Translator(pattern).translate()


class _Translator:
    """One left-to-right pass over the pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._written: list[str] = []
        self._sizes: list[int] = []  # of each piece of `_written`, with repeats written out
        self._open_groups: list[int] = []  # where each open group starts in `_written`
        self._groups = 0

    def translate(self) -> RegularExpression:
        atom: int | None = None  # where what a quantifier would repeat starts in `_written`
        while self._at < len(self._pattern):
            character = self._pattern[self._at]
            start = len(self._written)
            if quantifier := _QUANTIFIER.match(self._pattern, self._at):
                self._quantifier(quantifier, atom)
                atom = None
            elif character == "(":
                self._open_group()
                atom = None
            elif character == ")":
                if not self._open_groups:
                    raise self._refused("a `)` without its `(`")
                atom = self._open_groups.pop()
                self._take(")")
            elif character == "[":
                self._character_class()
                atom = start
            elif character in "|^$":
                self._take(r"\z" if character == "$" else character)
                atom = None
            elif character == "\\":
                self._escape()
                atom = start
            elif character in "{}":
                raise self._refused(f"`{character}` outside a quantifier", f"write \\{character}")
            else:
                self._take(r"[^\n]" if character == "." else character)
                atom = start
        if self._open_groups:
            raise self._refused("a `(` without its `)`")
        if sum(self._sizes) > _MAX_WRITTEN_OUT:
            raise self._refused(f"written out it matches more than {_MAX_WRITTEN_OUT} characters")
        text = "".join(self._written)
        return RegularExpression(text, self._groups, _can_be_empty(text))

    def _take(self, written: str, length: int = 1) -> None:
        self._written.append(written)
        self._sizes.append(1)
        self._at += length

    def _refused(self, reason: str, hint: str = "") -> FunctionTypeError:
        shown = f"the regular expression {self._pattern!r} cannot be used: {reason}"
        return FunctionTypeError(shown, hint or "use the syntax that Java and RE2 share")

    def _quantifier(self, match: re.Match[str], atom: int | None) -> None:
        if atom is None:
            raise self._refused(f"nothing to repeat before `{match[0]}`")
        if match[1]:
            least, most = int(match[1]), int(match[3] or match[1])
            if least > most:
                raise self._refused(f"bad repeat count {match[0]}")
            self._sizes[atom:] = [size * max(most, 1) for size in self._sizes[atom:]]
        repeated = "".join(self._written[atom:])
        if repeated.startswith("(") and _can_be_empty(repeated):
            raise self._refused(f"{repeated} is repeated but can be empty")
        self._take(match[0], len(match[0]))
        following = self._pattern[self._at : self._at + 1]
        if following == "+":
            raise self._refused("possessive quantifiers")
        if following == "?":
            self._take("?")

    def _open_group(self) -> None:
        self._open_groups.append(len(self._written))
        if self._pattern.startswith("(?:", self._at):
            self._take("(?:", 3)
        elif self._pattern.startswith("(?", self._at):
            raise self._refused("flags, named groups and look-around", "use (…) or (?:…)")
        else:
            self._groups += 1
            self._take("(")

    def _escape(self) -> None:
        following = self._pattern[self._at + 1 : self._at + 2]
        if following == "s":
            self._take(f"[{_SPACES}]", 2)
        elif following == "S":
            self._take(f"[^{_SPACES}]", 2)
        elif following and (following in _SAME_ESCAPES or following in _PUNCTUATION):
            self._take("\\" + following, 2)
        else:
            raise self._refused(f"the escape \\{following}")

    def _character_class(self) -> None:
        self._take("[")
        if self._pattern.startswith("^", self._at):
            self._take("^")
        first = True
        while True:
            character = self._pattern[self._at : self._at + 1]
            if not character:
                raise self._refused("a `[` without its `]`")
            if character == "]" and not first:
                self._take("]")
                return
            if character in "[]":
                raise self._refused(f"`{character}` inside […]", f"write \\{character}")
            if self._pattern.startswith(("&&", "--", "~~", "||"), self._at):
                raise self._refused(
                    f"`{self._pattern[self._at : self._at + 2]}` inside […]", "escape the signs"
                )
            if character == "\\":
                self._class_escape()
            else:
                self._take("\\^" if character == "^" else character)
            first = False

    def _class_escape(self) -> None:
        following = self._pattern[self._at + 1 : self._at + 2]
        if following == "s":
            self._take(_SPACES, 2)
        elif following and (following in _SAME_ESCAPES or following in _PUNCTUATION):
            self._take("\\" + following, 2)
        else:
            raise self._refused(f"the escape \\{following} inside […]")


def _can_be_empty(text: str) -> bool:
    """Whether a translated pattern can match nothing. Anchors hold in the empty text, so that decides it."""
    try:
        return re.match(text.replace(r"\z", r"\Z"), "") is not None
    except (re.error, OverflowError) as error:
        raise FunctionTypeError(f"the regular expression {text!r} cannot be used: {error}") from None


@dataclass(frozen=True)
class Replacement:
    """The replacement of `regexp_replace`, as each engine wants it."""

    spark: str
    duckdb: str


def replacement(text: str, groups: int) -> Replacement:
    r"""`$1` is the first group; a backslash makes the next sign itself.

    >>> replacement("<$1>", 1)
    Replacement(spark='<$1>', duckdb='<\\1>')
    """
    spark: list[str] = []
    duckdb: list[str] = []
    at = 0
    while at < len(text):
        if reference := re.compile(r"\$([0-9])(?![0-9])").match(text, at):
            if int(reference[1]) > groups:
                raise FunctionTypeError(f"the replacement {text!r} names group {reference[1]} of {groups}")
            spark.append(f"${reference[1]}")
            duckdb.append(f"\\{reference[1]}")
            at += 2
            continue
        if text[at] == "$" or (text[at] == "\\" and at + 1 == len(text)):
            raise FunctionTypeError(
                f"the replacement {text!r} has a single `{text[at]}`", f"write \\{text[at]}"
            )
        at += text[at] == "\\"
        spark.append("\\" + text[at] if text[at] in "\\$" else text[at])
        duckdb.append("\\\\" if text[at] == "\\" else text[at])
        at += 1
    return Replacement("".join(spark), "".join(duckdb))
