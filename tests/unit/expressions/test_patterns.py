"""The regular expressions and LIKE patterns that mean the same to every engine, and the refused rest."""

from __future__ import annotations

import pytest

from plait.expressions.functions import FunctionTypeError
from plait.expressions.functions.patterns import check_like, regular_expression, replacement


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        ("abc", "abc", 0),
        ("a.c$", r"a[^\n]c\z", 0),
        (r"(\d+)-(?:x|y)*?", r"(\d+)-(?:x|y)*?", 1),
        (r"\s[\s,]\S", r"[ \t\n\x0B\f\r][ \t\n\x0B\f\r,][^ \t\n\x0B\f\r]", 0),
        (r"[a^b]{2,3}", r"[a\^b]{2,3}", 0),
        (r"[^\]x]", r"[^\]x]", 0),
        (r"\{\}", r"\{\}", 0),
    ],
)
def test_translation(pattern: str, text: str, groups: int) -> None:
    translated = regular_expression(pattern)
    assert (translated.text, translated.groups) == (text, groups)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "(",
            ")",
            "(a",
            "a)",
            "[a",
            "[]",
            "[[:alpha:]]",
            "[a&&b]",
            "[a--b]",
            "*a",
            "a**",
            "a|*",
            "(*)",
            "^*",
        ),
        *(
            "a{",
            "a}",
            "{2}",
            "a{2,1}",
            "a{1001}",
            "a*+",
            "a++",
            "a{2}+",
            "(?i)a",
            "(?=a)",
            "(?<n>a)",
            "(?!a)",
        ),
        *(
            r"\b",
            r"\1",
            r"\p{L}",
            r"\Qa\E",
            r"\z",
            "\\",
            r"[\b]",
            r"[\S]",
            "(a*)*",
            "(a?)+",
            "(|a){2}",
            "(a*|b)+",
        ),
        *("(?!a)", "(a*|b)+", "[z-a]", "a" * 1001, "(a{40}){40}"),
    ],
)
def test_refused_regular_expression(pattern: str) -> None:
    with pytest.raises(FunctionTypeError, match="regular expression"):
        regular_expression(pattern)


@pytest.mark.parametrize(
    ("pattern", "can_be_empty"), [("a*", True), ("^", True), ("a|$", True), ("a+", False)]
)
def test_can_be_empty(pattern: str, can_be_empty: bool) -> None:
    assert regular_expression(pattern).can_be_empty is can_be_empty


@pytest.mark.parametrize("pattern", ["", "%", "50\\%", "a\\_b", "\\\\", "line\nbreak%"])
def test_like(pattern: str) -> None:
    check_like(pattern)


@pytest.mark.parametrize("pattern", ["\\", "a\\", "\\a", "\\\\\\", "\\\n"])
def test_refused_like(pattern: str) -> None:
    with pytest.raises(FunctionTypeError, match="LIKE"):
        check_like(pattern)


@pytest.mark.parametrize(
    ("text", "spark", "duckdb"),
    [
        ("x", "x", "x"),
        ("<$1>$0", "<$1>$0", "<\\1>\\0"),
        ("\\$5", "\\$5", "$5"),
        ("\\\\", "\\\\", "\\\\"),
        ("\\a", "a", "a"),
    ],
)
def test_replacement(text: str, spark: str, duckdb: str) -> None:
    written = replacement(text, groups=1)
    assert (written.spark, written.duckdb) == (spark, duckdb)


@pytest.mark.parametrize("text", ["$", "$2", "$x", "$11", "\\"])
def test_refused_replacement(text: str) -> None:
    with pytest.raises(FunctionTypeError, match="replacement"):
        replacement(text, groups=1)
