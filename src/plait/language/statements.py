"""What a source can declare: the statements, as the parser hands them to the binder.

Queries stay sqlglot trees (`dialect` says of which shape); everything else is read to the end, apart from
what needs the catalog. A statement ends at a semicolon, so that a mistake in one never hides those of
the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from plait.errors import PlaitError, Source, Span
from plait.expressions.types import Type
from plait.language.options import Option


@dataclass(frozen=True)
class Name:
    """A name as written, and where."""

    text: str
    span: Span

    @property
    def key(self) -> str:
        """Names that differ in case are the same."""
        return self.text.lower()


@dataclass(frozen=True)
class ColumnDeclaration:
    """`storage` is 'FLOAT' for a FLOAT column, which is read as DOUBLE, and '' otherwise."""

    name: Name
    type: Type
    storage: str
    span: Span


@dataclass(frozen=True)
class Watermark:
    column: Name
    delay_us: int
    span: Span


@dataclass(frozen=True)
class ResultFolder:
    """`INTO 'folder'`."""

    path: str
    span: Span


@dataclass(frozen=True)
class CreateStream:
    name: Name
    columns: tuple[ColumnDeclaration, ...]
    watermark: Watermark
    options: tuple[Option, ...]
    span: Span


@dataclass(frozen=True)
class CreateTable:
    name: Name
    columns: tuple[ColumnDeclaration, ...]
    options: tuple[Option, ...]
    span: Span


@dataclass(frozen=True)
class CreateSite:
    name: Name
    options: tuple[Option, ...]
    span: Span


@dataclass(frozen=True)
class CreateLink:
    source: Name
    target: Name
    options: tuple[Option, ...]
    span: Span


@dataclass(frozen=True)
class CreateQuery:
    """`select` is a SELECT, UNION or parenthesised query; `source` is the text that its places refer to."""

    name: Name
    site: Name | None
    folder: ResultFolder | None
    options: tuple[Option, ...]
    select: exp.Query
    source: Source
    span: Span


@dataclass(frozen=True)
class Drop:
    """`kind` is 'stream', 'table', 'site', 'link' or 'query'; `target` is the other end of a link."""

    kind: str
    name: Name
    target: Name | None
    if_exists: bool
    span: Span


@dataclass(frozen=True)
class Unreadable:
    """A CREATE whose error is reported already. What it would have declared is not to be called unknown."""

    kind: str
    name: Name
    span: Span


Statement: TypeAlias = CreateStream | CreateTable | CreateSite | CreateLink | CreateQuery | Drop | Unreadable


def parse(source: Source) -> tuple[list[Statement], list[PlaitError]]:
    """The statements of a source, and every error found in it."""
    from plait.language.statement_parser import parse_source  # it builds the classes above

    return parse_source(source)
