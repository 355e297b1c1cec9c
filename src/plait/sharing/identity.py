"""Names for what queries share that stay the same whoever else is there.

What is kept of rows outlives the set of queries that it is kept for: queries come and go, and with them the
columns that are read of a stream, so positions of columns, or numbers given one after the other, would mean
something else after a change. Here expressions are written over the names of columns, and what is
shared is named by a digest of what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from plait.expressions.duckdb import to_duckdb
from plait.expressions.nodes import Expression
from plait.plan.nodes import StreamScan
from plait.sharing.joins import JoinKey
from plait.sharing.patterns import Pattern, Selection
from plait.sharing.selects import SelectKey
from plait.sharing.trees import TreeKey
from plait.windows.partials import Partial


def short(*parts: str) -> str:
    """A name of 16 signs."""
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


def number(*parts: str) -> int:
    """A number that fits a BIGINT, and is not negative."""
    return int.from_bytes(sha256("\0".join(parts).encode()).digest()[:8]) >> 2


def of_streams(streams: Iterable[str]) -> str:
    return short(*sorted(streams))


def of_select(key: SelectKey) -> str:
    return short(*_one(key.scan, key.pattern))


def of_tree(key: TreeKey) -> str:
    names = _names([key.scan])
    return short(key.scan.stream, *_pattern(key.pattern, names), "by", *_texts(key.keys, names))


def of_join(key: JoinKey) -> str:
    parts = [text for scan, each in zip(key.scans, key.patterns, strict=True) for text in _one(scan, each)]
    return short(*parts, "on", *_texts([key.predicate], _names(key.scans)))


def of_partial(partial: Partial, scan: StreamScan) -> str:
    names = _names([scan])
    argument = [] if partial.argument is None else [partial.argument]
    where = [] if partial.filter is None else [partial.filter]
    types = [str(each.type) for each in argument]
    return short(partial.kind, *_texts(argument, names), *types, "where", *_texts(where, names))


def of_selection(selection: Selection, scan: StreamScan) -> int:
    """The number of a predicate over a stream. Its terms may come in any order."""
    return number(scan.stream, *sorted(_texts(selection.terms, _names([scan]))))


def _one(scan: StreamScan, pattern: Pattern) -> list[str]:
    return [scan.stream, *_pattern(pattern, _names([scan])), ";"]


def _names(scans: Sequence[StreamScan]) -> list[str]:
    """What the columns of scans that stand beside each other are called."""
    return [f"{k}.{scan.stream!r}.{field.name!r}" for k, scan in enumerate(scans) for field in scan.columns]


def _pattern(pattern: Pattern, names: Sequence[str]) -> list[str]:
    # Each parameter is in one place, so that none needs a number, which would depend on the order of terms.
    known = [*names, *("?" for _ in pattern.parameters)]
    bounded = [] if pattern.bounded is None else [pattern.bounded]
    return [
        *sorted(_texts(pattern.rest, known)),
        "looked up",
        *_texts(pattern.looked_up, known),
        "bounded",
        *_texts(bounded, known),
        *(["written"] if pattern.has_written else []),
    ]


def _texts(expressions: Iterable[Expression], names: Sequence[str]) -> list[str]:
    return [to_duckdb(each, names) for each in expressions]
