"""Binds one query over a small catalog, for the tests of the binder."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from plait.errors import ErrorReport, PlaitError
from plait.language import load_text
from plait.plan.format import format_plans
from plait.workload import Query, Workload

CATALOG = """
CREATE SITE atlanta; CREATE SITE newyork;
CREATE STREAM s (k STRING, v INT, d DECIMAL(10,2), x DOUBLE, day DATE, ok BOOLEAN, ts TIMESTAMP,
                 WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS);
CREATE STREAM r (k STRING, w INT, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE TABLE t (k STRING, name STRING, city STRING);
CREATE TABLE u (k STRING, size INT);
"""


def workload(statements: str) -> Workload:
    return load_text(CATALOG + statements)


def query(select: str, others: str = "") -> Query:
    return workload(f"{others}\nCREATE CONTINUOUS QUERY q AS\n{dedent(select)};").query("q")


def plan(select: str, others: str = "") -> str:
    """The plan as text; scans without their columns."""
    text = format_plans({"q": query(select, others).plan})
    return re.sub(r"(:= (?:scan|table) \w+) \[.*\]", r"\1", text)


def shape(text: str) -> str:
    """An expected plan as written in a test."""
    return dedent(text).lstrip("\n")


def projected(expression: str) -> str:
    """How the one expression of a SELECT over `s` is bound."""
    last = plan(f"SELECT {expression} AS e FROM s").splitlines()[-2]
    return last.split(": ", 1)[1]


def errors(select: str, others: str = "") -> list[PlaitError]:
    """Everything that is wrong with a query."""
    return statement_errors(f"{others}\nCREATE CONTINUOUS QUERY q AS\n{dedent(select)};")


def statement_errors(statements: str) -> list[PlaitError]:
    with pytest.raises(ErrorReport) as caught:
        workload(statements)
    return list(caught.value.errors)


def place(error: PlaitError) -> str:
    """The text that an error underlines."""
    assert error.span is not None
    return error.span.source.text[error.span.start : error.span.end]


def codes(found: list[PlaitError]) -> list[tuple[str, str]]:
    """Code and underlined text of each error."""
    return [(error.code, place(error)) for error in found]
