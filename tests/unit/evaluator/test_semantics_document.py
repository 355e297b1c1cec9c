"""Every example of docs/semantics.md, run.

An example is a run of fenced blocks: `sql` with statements, `data NAME` with a source's rows, and
`result QUERY` with the rows that the rules give. A `sql` block that only declares streams and tables holds
for all later ones. Words behind the name set options: `bad_records=N`, `closed_only`, `start=TIME`, `now=…`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

import pytest

from plait import language
from plait.catalog import Catalog
from plait.engines.duckdb import Database
from plait.evaluator import StoredData, difference, evaluate
from plait.expressions.types import Kind, Type

DOCUMENT = Path(__file__).parents[3] / "docs" / "semantics.md"
Row: TypeAlias = tuple[object, ...]

FENCE = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    line: int
    name: str
    options: dict[str, str]
    lines: list[list[str]]


@dataclass
class Example:
    line: int
    sql: str
    data: list[Block] = field(default_factory=list)
    results: list[Block] = field(default_factory=list)


def examples() -> Iterator[Example]:
    text = DOCUMENT.read_text(encoding="utf-8")
    declarations = ""
    example: Example | None = None
    for match in FENCE.finditer(text):
        kind, information, body = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if kind == "sql":
            if example is not None:
                yield example
            example = None
            if "QUERY" in body:
                example = Example(line, declarations + body)
            else:
                declarations += body
            continue
        assert example is not None, f"line {line}: a block without its sql"
        name, *words = information.split(" ")
        options = dict(word.partition("=")[::2] for word in words)
        block = Block(line, name, options, list(csv.reader(body.splitlines())))
        (example.data if kind == "data" else example.results).append(block)
    if example is not None:
        yield example


def value(text: str, type_: Type) -> object:
    if text == "NULL":
        return None
    match type_.kind:
        case Kind.STRING:
            return text
        case Kind.TIMESTAMP:
            return time(text)
        case Kind.DATE:
            return date.fromisoformat(text)
        case Kind.DOUBLE:
            return float(text)
        case Kind.DECIMAL:
            return Decimal(text)
        case Kind.BOOLEAN:
            return {"true": True, "false": False}[text]
        case _:
            return int(text)


def time(text: str) -> datetime:
    return datetime.fromisoformat(text if "-" in text else f"2026-01-01 {text}")


def data_of(
    example: Example, catalog: Catalog
) -> tuple[dict[str, list[tuple[object, ...]]], datetime | None]:
    """The rows of all sources of an example, and the clock that it sets."""
    rows, now = {}, None
    for block in example.data:
        relation = catalog.streams.get(block.name) or catalog.tables[block.name]
        types = [column.type for column in relation.columns]
        rows[block.name] = [tuple(map(value, line, types)) for line in block.lines]
        now = time(block.options["now"]) if "now" in block.options else now
    return rows, now


@pytest.fixture(scope="module")
def shared_database() -> Iterator[Database]:
    with Database() as database:
        yield database


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: f"line-{example.line}")
def test_example(example: Example, shared_database: Database) -> None:
    workload = language.load_text(example.sql)
    rows, now = data_of(example, workload.catalog)
    assert example.results, "an example shows results"
    with StoredData.from_rows(workload.catalog, rows, database=shared_database, now=now) as data:
        for block in example.results:
            start = time(block.options["start"]) if "start" in block.options else None
            result = evaluate(
                workload.query(block.name), data, closed_only="closed_only" in block.options, start=start
            )
            header, *lines = block.lines
            expected = [tuple(map(value, line, result.types)) for line in lines]
            assert list(result.columns) == header, f"line {block.line}"
            assert not difference(expected, result.rows), f"line {block.line}"
            if "bad_records" in block.options:
                assert sum(result.bad_records.values()) == int(block.options["bad_records"])


def test_every_query_of_the_document_has_a_result() -> None:
    for example in examples():
        shown = {block.name for block in example.results}
        declared = set(re.findall(r"CONTINUOUS QUERY (\w+)", example.sql))
        read_by_others = {name for name in declared if re.search(rf"FROM {name}\b", example.sql)}
        assert declared - shown <= read_by_others, f"line {example.line}"
