"""Functions of text. Positions count characters (code points) from 1; letters change case in ASCII only."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_lowercase, ascii_uppercase

from plait.expressions.functions.definition import (
    Arguments,
    Category,
    Example,
    Function,
    Resolved,
    Rule,
    Shape,
    Shorthand,
    Staged,
    Template,
    verbatim,
)
from plait.expressions.functions.patterns import check_like, regular_expression, replacement
from plait.expressions.functions.rules import alike, takes
from plait.expressions.types import BOOLEAN, INT, STRING, Type

_MAX_PADDED_CHARACTERS = 10_000  # keeps one expression from filling the memory of a worker


def _is_text(type_: Type) -> bool:
    return type_ == STRING


def _text(
    name: str,
    usage: str,
    meaning: str,
    rule: Rule,
    example: Example,
    *,
    spark: Template = "",
    duckdb: Template = "",
    spellings: tuple[str, ...] = (),
    literals: frozenset[int] = frozenset(),
    strict: bool = True,
) -> Function:
    """A function that both engines know by our name unless a template says otherwise."""
    return Function(
        name,
        Category.TEXT,
        usage,
        meaning,
        rule,
        spark=spark or f"{name}({{arguments}})",
        duckdb=duckdb or f"{name}({{arguments}})",
        example=example,
        spellings=(name, *spellings),
        literals=literals,
        strict=strict,
    )


def _constant_text(arguments: Arguments, position: int, what: str) -> str:
    value = arguments.constants[position]
    if not isinstance(value, str):
        raise arguments.invalid(f"{what} must be a constant text")
    return value


def _like_rule(arguments: Arguments) -> Resolved:
    resolved = takes(BOOLEAN, STRING, STRING)(arguments)
    check_like(_constant_text(arguments, 1, "the pattern"))
    return resolved


def _matching(result: Type) -> Rule:
    """`f(text, pattern)`."""

    def rule(arguments: Arguments) -> Resolved:
        resolved = takes(result, STRING, STRING)(arguments)
        regular_expression(_constant_text(arguments, 1, "the pattern"))
        return resolved

    return rule


def _extraction(arguments: Arguments) -> Resolved:
    """`regexp_extract(text, pattern[, group])`."""
    resolved = takes(STRING, STRING, STRING, INT, optional=1)(arguments)
    groups = regular_expression(_constant_text(arguments, 1, "the pattern")).groups
    group = arguments.constants[2] if len(arguments.types) == 3 else 1
    if not isinstance(group, int) or not 0 <= group <= min(groups, 9):
        raise arguments.invalid(
            f"the group must be a constant from 0 to {min(groups, 9)}: the pattern has {groups} groups",
            "put (…) around the part you want, or ask for group 0, the whole match",
        )
    return resolved


def _substitution(arguments: Arguments) -> Resolved:
    """`regexp_replace(text, pattern, replacement)`."""
    resolved = takes(STRING, STRING, STRING, STRING)(arguments)
    pattern = regular_expression(_constant_text(arguments, 1, "the pattern"))
    if pattern.can_be_empty:
        raise arguments.invalid(
            "a pattern that matches the empty text cannot be replaced", "use + instead of *, or anchor less"
        )
    replacement(_constant_text(arguments, 2, "the replacement"), pattern.groups)
    return resolved


def _padding(arguments: Arguments) -> Resolved:
    """`lpad(text, length[, pad])`."""
    resolved = takes(STRING, STRING, INT, STRING, optional=1)(arguments)
    length = arguments.constants[1]
    if not isinstance(length, int) or not 0 <= length <= _MAX_PADDED_CHARACTERS:
        raise arguments.invalid(f"the length must be a constant from 0 to {_MAX_PADDED_CHARACTERS}")
    if len(arguments.types) == 3 and not _constant_text(arguments, 2, "the padding"):
        raise arguments.invalid("the padding must not be empty")
    return resolved


def _splitting(arguments: Arguments) -> Resolved:
    """`split_part(text, delimiter, number)`."""
    resolved = takes(STRING, STRING, STRING, INT)(arguments)
    if not _constant_text(arguments, 1, "the delimiter"):
        raise arguments.invalid("the delimiter must not be empty")
    number = arguments.constants[2]
    if not isinstance(number, int) or not 1 <= abs(number) <= _MAX_PADDED_CHARACTERS:
        raise arguments.invalid("the number of the part must be a constant other than 0")
    return resolved


def _pattern(shape: Shape) -> str:
    value = shape.constants[1]
    assert isinstance(value, str)  # the rule has checked it
    return regular_expression(value).text


def spark_text(text: str) -> str:
    """A string literal of Spark. `$` is escaped because Spark replaces `${…}` even inside of literals."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if c.isprintable() and c != "$" else _unicode_escape(c) for c in escaped) + "'"


def _unicode_escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def duckdb_text(text: str) -> str:
    """A string literal of DuckDB, which cannot hold a NUL."""
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def _matches(function: str, quoted: Callable[[str], str]) -> Callable[[Shape], str]:
    return lambda shape: f"{function}({{0}}, {verbatim(quoted(_pattern(shape)))})"


def _extract(quoted: Callable[[str], str]) -> Callable[[Shape], str]:
    def template(shape: Shape) -> str:
        group = "{2}" if len(shape.types) == 3 else "1"
        return f"regexp_extract({{0}}, {verbatim(quoted(_pattern(shape)))}, {group})"

    return template


def _replace_spark(shape: Shape) -> str:
    written = replacement(str(shape.constants[2]), 9).spark
    return f"regexp_replace({{0}}, {verbatim(spark_text(_pattern(shape)))}, {verbatim(spark_text(written))})"


def _replace_duckdb(shape: Shape) -> str:
    written = replacement(str(shape.constants[2]), 9).duckdb
    arguments = f"{verbatim(duckdb_text(_pattern(shape)))}, {verbatim(duckdb_text(written))}"
    return f"regexp_replace({{0}}, {arguments}, 'g')"


def _substring_duckdb(shape: Shape) -> Staged:
    """Spark's rules: position 0 is 1, a negative one counts from the end and may lie before the start."""
    start = (
        "CASE WHEN {1} > 0 THEN CAST({1} AS BIGINT) - 1 "
        "WHEN {1} < 0 THEN length({0}) + {1} ELSE CAST({1} AS BIGINT) END"
    )
    if len(shape.types) == 2:  # as long as an INT can say, which matters far before the start
        return Staged(
            start,
            "CASE WHEN {value} < 0 THEN left({0}, {value} + 2147483647) ELSE substring({0}, {value} + 1) END",
        )
    return Staged(
        start,
        "CASE WHEN {value} IS NULL OR {2} IS NULL THEN NULL "
        "WHEN {2} <= 0 OR {value} + {2} <= 0 THEN left({0}, 0) "
        "WHEN {value} < 0 THEN left({0}, {value} + {2}) "
        "ELSE substring({0}, {value} + 1, {2}) END",
    )


def _end(function: str) -> str:
    """`left` and `right` of DuckDB, which give negative lengths a meaning of their own."""
    return f"CASE WHEN {{1}} <= 0 THEN left({{0}}, 0) ELSE {function}({{0}}, {{1}}) END"


def _pad(function: str) -> Callable[[Shape], str]:
    return lambda shape: f"{function}({{0}}, {{1}}, " + ("{2})" if len(shape.types) == 3 else "' ')")


def _concatenation(shape: Shape) -> str:
    return "(" + " || ".join(f"{{{i}}}" for i in range(len(shape.types))) + ")"


TEXTS: tuple[Function, ...] = (
    Function(
        "concat",
        Category.TEXT,
        "a || b",
        "The texts one after the other, NULL if any is.",
        alike(STRING, most=None, when=_is_text, wanted="text: CAST other types to STRING", of_nulls=STRING),
        spark=_concatenation,
        duckdb=_concatenation,
        example=Example(("a", "b"), "ab"),
        spellings=("concat",),
        written="{0} || {1}",
    ),
    _text(
        "concat_ws",
        "concat_ws(separator, a, …)",
        "The texts that are not NULL, with the separator between them.",
        alike(STRING, most=None, when=_is_text, wanted="text: CAST other types to STRING", of_nulls=STRING),
        Example(("-", "a", None, "b"), "a-b"),
        strict=False,
    ),
    _text(
        "length",
        "length(s)",
        "Number of characters.",
        takes(INT, STRING),
        Example(("Plait",), 5),
        duckdb="CAST(length({0}) AS INTEGER)",
        spellings=("char_length", "character_length", "len"),
    ),
    _text(
        "octet_length",
        "octet_length(s)",
        "Number of bytes in UTF-8.",
        takes(INT, STRING),
        Example(("é",), 2),
        duckdb="CAST(strlen({0}) AS INTEGER)",
    ),
    _text(
        "upper",
        "upper(s)",
        "The letters a to z in upper case; other letters stay.",
        takes(STRING, STRING),
        Example(("aé",), "Aé"),
        spark=f"translate({{0}}, '{ascii_lowercase}', '{ascii_uppercase}')",
        duckdb=f"translate({{0}}, '{ascii_lowercase}', '{ascii_uppercase}')",
        spellings=("ucase",),
    ),
    _text(
        "lower",
        "lower(s)",
        "The letters A to Z in lower case; other letters stay.",
        takes(STRING, STRING),
        Example(("AÉ",), "aÉ"),
        spark=f"translate({{0}}, '{ascii_uppercase}', '{ascii_lowercase}')",
        duckdb=f"translate({{0}}, '{ascii_uppercase}', '{ascii_lowercase}')",
        spellings=("lcase",),
    ),
    _text(
        "trim",
        "trim(s)",
        "Without spaces at both ends; other white space stays.",
        takes(STRING, STRING),
        Example((" a ",), "a"),
        duckdb="trim({0}, ' ')",
        spellings=("btrim",),
    ),
    _text(
        "ltrim",
        "ltrim(s)",
        "Without spaces at the start.",
        takes(STRING, STRING),
        Example((" a ",), "a "),
        duckdb="ltrim({0}, ' ')",
    ),
    _text(
        "rtrim",
        "rtrim(s)",
        "Without spaces at the end.",
        takes(STRING, STRING),
        Example((" a ",), " a"),
        duckdb="rtrim({0}, ' ')",
    ),
    _text(
        "substring",
        "substring(s, start[, length])",
        "Part of a text; a negative start counts from the end, 0 is 1.",
        takes(STRING, STRING, INT, INT, optional=1),
        Example(("Plait", 2, 3), "lai"),
        duckdb=_substring_duckdb,
        spellings=("substr",),
    ),
    _text(
        "left",
        "left(s, n)",
        "The first n characters.",
        takes(STRING, STRING, INT),
        Example(("Plait", 2), "Pl"),
        duckdb=_end("left"),
    ),
    _text(
        "right",
        "right(s, n)",
        "The last n characters.",
        takes(STRING, STRING, INT),
        Example(("Plait", 2), "it"),
        duckdb=_end("right"),
    ),
    _text(
        "replace",
        "replace(s, search, with)",
        "Every occurrence replaced; an empty search changes nothing.",
        takes(STRING, STRING, STRING, STRING),
        Example(("abab", "b", "x"), "axax"),
    ),
    _text(
        "translate",
        "translate(s, from, to)",
        "Characters of `from` replaced by those at their places in `to`, or removed.",
        takes(STRING, STRING, STRING, STRING),
        Example(("abc", "ab", "x"), "xc"),
    ),
    _text(
        "lpad",
        "lpad(s, n[, pad])",
        "Filled up at the start, or cut, to n characters; n and pad are constants.",
        _padding,
        Example(("7", 3, "0"), "007"),
        spark=_pad("lpad"),
        duckdb=_pad("lpad"),
        literals=frozenset({1, 2}),
    ),
    _text(
        "rpad",
        "rpad(s, n[, pad])",
        "Filled up at the end, or cut, to n characters; n and pad are constants.",
        _padding,
        Example(("7", 3, "0"), "700"),
        spark=_pad("rpad"),
        duckdb=_pad("rpad"),
        literals=frozenset({1, 2}),
    ),
    _text(
        "instr",
        "instr(s, part)",
        "Where the part first occurs, 0 if it does not.",
        takes(INT, STRING, STRING),
        Example(("Plait", "ai"), 3),
        duckdb="CAST(instr({0}, {1}) AS INTEGER)",
    ),
    _text(
        "startswith",
        "startswith(s, part)",
        "Whether the text starts with the part.",
        takes(BOOLEAN, STRING, STRING),
        Example(("Plait", "Pl"), True),
        duckdb="starts_with({0}, {1})",
    ),
    _text(
        "endswith",
        "endswith(s, part)",
        "Whether the text ends with the part.",
        takes(BOOLEAN, STRING, STRING),
        Example(("Plait", "it"), True),
        duckdb="suffix({0}, {1})",
    ),
    _text(
        "contains",
        "contains(s, part)",
        "Whether the part occurs in the text.",
        takes(BOOLEAN, STRING, STRING),
        Example(("Plait", "la"), True),
    ),
    _text(
        "split_part",
        "split_part(s, delimiter, n)",
        "The n-th part (from the end if n is negative), empty if there is none; both are constants.",
        _splitting,
        Example(("a,b,c", ",", 2), "b"),
        literals=frozenset({1, 2}),
    ),
    Function(
        "like",
        Category.TEXT,
        "s LIKE pattern",
        "`%` is any text, `_` one character, a backslash escapes them; the pattern is a constant.",
        _like_rule,
        spark="({0} LIKE {1})",
        duckdb="({0} LIKE {1} ESCAPE '\\')",
        example=Example(("Plait", "P_a%"), True),
        written="{0} LIKE {1}",
        literals=frozenset({1}),
    ),
    Function(
        "rlike",
        Category.TEXT,
        "s RLIKE pattern",
        "Whether a regular expression (a constant) matches somewhere.",
        _matching(BOOLEAN),
        spark=_matches("rlike", spark_text),
        duckdb=_matches("regexp_matches", duckdb_text),
        example=Example(("Plait", "^P.+t$"), True),
        spellings=("rlike", "regexp_like", "regexp"),
        written="{0} RLIKE {1}",
        literals=frozenset({1}),
    ),
    _text(
        "regexp_extract",
        "regexp_extract(s, pattern[, group])",
        "What the group (1 if absent, 0 is all) matched first, empty if nothing did.",
        _extraction,
        Example(("gate 17", "[a-z]+ (\\d+)", 1), "17"),
        spark=_extract(spark_text),
        duckdb=_extract(duckdb_text),
        literals=frozenset({1, 2}),
    ),
    _text(
        "regexp_replace",
        "regexp_replace(s, pattern, with)",
        "Every match replaced; `$1` in `with` is the first group. Both are constants.",
        _substitution,
        Example(("gate 17", "(\\d)", "<$1>"), "gate <1><7>"),
        spark=_replace_spark,
        duckdb=_replace_duckdb,
        literals=frozenset({1, 2}),
    ),
)

TEXT_SHORTHANDS: tuple[Shorthand, ...] = (
    Shorthand(
        "locate",
        Category.TEXT,
        "locate(part, s)",
        "Short for instr(s, part).",
        Example(("ai", "Plait"), 3),
        ("locate", "position", "charindex"),
    ),
)
