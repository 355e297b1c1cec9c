"""Logic, comparison and conditionals: three-valued, as SQL has it; NaN equals itself and is the greatest
number.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.expressions.functions.definition import Category, Example, Function, Shape, Shorthand
from plait.expressions.functions.rules import alike, any_type, case_rule, logical
from plait.expressions.types import BOOLEAN


def _chain(operator: str) -> Callable[[Shape], str]:
    """`(a AND b AND c)`, for any number of arguments."""
    return lambda shape: "(" + f" {operator} ".join(f"{{{i}}}" for i in range(len(shape.types))) + ")"


def _membership(shape: Shape) -> str:
    return "({0} IN (" + ", ".join(f"{{{i}}}" for i in range(1, len(shape.types))) + "))"


def _case(shape: Shape) -> str:
    last = len(shape.types) - 1
    branches = " ".join(f"WHEN {{{i}}} THEN {{{i + 1}}}" for i in range(0, last, 2))
    return f"CASE {branches} ELSE {{{last}}} END"


def _comparison(
    name: str, operator: str, meaning: str, example: Example, *, commutative: bool = False
) -> Function:
    return Function(
        name,
        Category.LOGIC,
        f"a {operator} b",
        meaning,
        alike(BOOLEAN),
        spark=f"({{0}} {operator} {{1}})",
        duckdb=f"({{0}} {operator} {{1}})",
        example=example,
        written=f"{{0}} {operator} {{1}}",
        commutative=commutative,
    )


LOGIC: tuple[Function, ...] = (
    Function(
        "and",
        Category.LOGIC,
        "a AND b",
        "True if all are; false if any is false, even beside NULL.",
        logical(2, None),
        spark=_chain("AND"),
        duckdb=_chain("AND"),
        example=Example((True, False), False),
        written="{0} AND {1}",
        strict=False,
        commutative=True,
    ),
    Function(
        "or",
        Category.LOGIC,
        "a OR b",
        "True if any is, even beside NULL.",
        logical(2, None),
        spark=_chain("OR"),
        duckdb=_chain("OR"),
        example=Example((True, False), True),
        written="{0} OR {1}",
        strict=False,
        commutative=True,
    ),
    Function(
        "not",
        Category.LOGIC,
        "NOT a",
        "The opposite; NULL stays NULL.",
        logical(1, 1),
        spark="(NOT {0})",
        duckdb="(NOT {0})",
        example=Example((True,), False),
        written="NOT {0}",
    ),
    _comparison("eq", "=", "Equal. NaN equals NaN.", Example((1, 2), False), commutative=True),
    _comparison("ne", "<>", "Not equal; also written `!=`.", Example((1, 2), True), commutative=True),
    _comparison(
        "lt", "<", "Less. Text compares by code point, FALSE before TRUE.", Example(("a", "b"), True)
    ),
    _comparison("le", "<=", "Less or equal.", Example((2, 2), True)),
    _comparison("gt", ">", "Greater. NaN is greater than every other number.", Example((1, 2), False)),
    _comparison("ge", ">=", "Greater or equal.", Example((2, 2), True)),
    Function(
        "null_safe_eq",
        Category.LOGIC,
        "a <=> b",
        "Equal, or both NULL; never NULL. Also `a IS NOT DISTINCT FROM b`.",
        alike(BOOLEAN),
        spark="({0} <=> {1})",
        duckdb="({0} IS NOT DISTINCT FROM {1})",
        example=Example((1, None), False),
        written="{0} <=> {1}",
        strict=False,
        commutative=True,
    ),
    Function(
        "is_null",
        Category.LOGIC,
        "a IS NULL",
        "Whether there is no value; `IS NOT NULL` is the opposite.",
        any_type(BOOLEAN),
        spark="({0} IS NULL)",
        duckdb="({0} IS NULL)",
        example=Example((1,), False),
        spellings=("isnull",),
        written="{0} IS NULL",
        strict=False,
    ),
    Function(
        "in",
        Category.LOGIC,
        "a IN (b, …)",
        "Equal to one of the values; NULL if it is to none and a NULL is among them.",
        alike(BOOLEAN, most=None),
        spark=_membership,
        duckdb=_membership,
        example=Example((2, 1, 2), True),
        written="{0} IN ({1}, {2})",
        strict=False,
    ),
)

CONDITIONALS: tuple[Function, ...] = (
    Function(
        "case",
        Category.CONDITIONAL,
        "CASE WHEN c THEN a … ELSE b END",
        "The value of the first condition that is true, else the last; also `CASE x WHEN y THEN a … END`.",
        case_rule,
        spark=_case,
        duckdb=_case,
        example=Example((False, "a", "b"), "b"),
        written="CASE WHEN {0} THEN {1} ELSE {2} END",
        strict=False,
    ),
    Function(
        "coalesce",
        Category.CONDITIONAL,
        "coalesce(a, b, …)",
        "The first value that is not NULL.",
        alike(most=None),
        spark="coalesce({arguments})",
        duckdb="coalesce({arguments})",
        example=Example((None, 2), 2),
        spellings=("coalesce", "nvl", "ifnull"),
        strict=False,
    ),
    Function(
        "nullif",
        Category.CONDITIONAL,
        "nullif(a, b)",
        "NULL if the two are equal, else the first.",
        alike(),
        spark="CASE WHEN {0} = {1} THEN NULL ELSE {0} END",
        duckdb="CASE WHEN {0} = {1} THEN NULL ELSE {0} END",
        example=Example((1, 1), None),
        spellings=("nullif",),
        strict=False,
    ),
    Function(
        "greatest",
        Category.CONDITIONAL,
        "greatest(a, b, …)",
        "The greatest value; NULLs are skipped.",
        alike(most=None),
        spark="greatest({arguments})",
        duckdb="greatest({arguments})",
        example=Example((1, 3, 2), 3),
        spellings=("greatest",),
        strict=False,
        commutative=True,
    ),
    Function(
        "least",
        Category.CONDITIONAL,
        "least(a, b, …)",
        "The least value; NULLs are skipped.",
        alike(most=None),
        spark="least({arguments})",
        duckdb="least({arguments})",
        example=Example((1, 3, 2), 1),
        spellings=("least",),
        strict=False,
        commutative=True,
    ),
)

CONDITIONAL_SHORTHANDS: tuple[Shorthand, ...] = (
    Shorthand(
        "if",
        Category.CONDITIONAL,
        "if(c, a, b)",
        "Short for CASE WHEN c THEN a ELSE b END.",
        Example((True, "a", "b"), "a"),
        ("if", "iff"),
    ),
    Shorthand(
        "nvl2",
        Category.CONDITIONAL,
        "nvl2(a, b, c)",
        "b if a is not NULL, else c.",
        Example((1, "b", "c"), "b"),
        ("nvl2",),
    ),
    Shorthand(
        "isnotnull",
        Category.LOGIC,
        "isnotnull(a)",
        "Short for a IS NOT NULL.",
        Example((1,), True),
        ("isnotnull",),
    ),
)
