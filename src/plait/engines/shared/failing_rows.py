"""The rows of a batch on which expressions of queries fail: counted, with the first of them.

Nothing is computed where nothing can fail. What can (`sharing.failing`) is looked at in three steps, each
only if the one before leaves something open:

1. The bounds of the columns, which Arrow tells quickly, rule out most of it: `v + 1` does not overflow if no
   `v` is near the end of its type, `a / b` has no zero to divide by.
2. One statement asks of each different expression that is left whether it fails on any row at all. Of
   `v + 1`, `v + 2`, … the least and the greatest constant do.
3. Of those that do, the rows are taken, and each query's conditions are applied to these alone: one statement
   for all that differ in constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from plait.batches import Failed, Outcome, sample_text
from plait.engines.duckdb import Database
from plait.engines.incremental.bands import BEGINNING_US, END_US
from plait.engines.shared.askers import create_table
from plait.engines.shared.group import SharedQuery
from plait.expressions.bounds import Bounds, cannot_fail
from plait.expressions.duckdb import literal_text, to_duckdb, type_to_duckdb
from plait.expressions.failing import fails
from plait.expressions.nodes import Call, Literal, columns_of, substitute_columns
from plait.plan.nodes import StreamScan
from plait.sharing.failing import checks
from plait.sharing.patterns import order
from plait.sharing.shapes import Shape, shaped

# So many aggregates in one statement: longer ones take longer to be planned than several.
_STATEMENT_SIZE = 100
# For one value of one argument, the result goes up, or down, with the other: it fails first at an end.
_MONOTONE = frozenset({"add", "subtract", "multiply"})

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class _Asked:
    """What a query asks of the rows on which a call fails: its place among the checks of the query, a
    condition, of a shape with its own constants, and the moments after and until which it counts rows.
    `columns` are those of a sample, by their names."""

    query: str
    place: int
    shape: Shape
    constants: tuple[Literal, ...]
    after_us: int
    until_us: int
    columns: tuple[tuple[str, str], ...]


class FailingRows:
    """`scans` say which columns of the streams are handed over, as `c0`, `c1`, … and `t`."""

    def __init__(self, queries: Sequence[SharedQuery], scans: Mapping[str, StreamScan]) -> None:
        self._asked: dict[str, dict[Call, list[_Asked]]] = {}
        for query in queries:
            for place, check in enumerate(checks(query.plan)):
                key = check.scan.stream.lower()
                fields = scans[key].columns
                places = [fields.index(field) for field in check.scan.columns]
                call = substitute_columns(check.call, places.__getitem__)
                assert isinstance(call, Call)
                own = shaped(len(fields), [substitute_columns(check.condition, places.__getitem__)], [])
                after_us = BEGINNING_US if query.after_us is None else query.after_us
                until_us = END_US if query.until_us is None else query.until_us
                named = zip(check.scan.columns, places, strict=True)
                columns = tuple((field.name, f"c{k}") for field, k in named)
                asked = _Asked(query.name, place, own.shape, own.constants, after_us, until_us, columns)
                self._asked.setdefault(key, {}).setdefault(call, []).append(asked)
        self._known: set[tuple[str, int]] = set()
        self._safe: dict[str, Mapping[int, Bounds]] = {}

    def found(
        self, database: Database, rows: Mapping[str, pa.Table], relations: Mapping[str, str]
    ) -> dict[str, dict[int, Failed]]:
        """By query and the place of the check. A query of which an earlier batch had a sample gets none."""
        found: dict[str, dict[int, Failed]] = {}
        for key, calls in self._asked.items():
            if key not in rows or not rows[key].num_rows:
                continue
            possible = self._possible(key, _bounds(rows[key], calls))
            names = [f"c{k}" for k in range(rows[key].num_columns - 1)]
            causes = dict.fromkeys(to_duckdb(fails(call), names) for call in _outermost(possible, len(names)))
            failed = [*_that_are_true(database, relations[key], [*causes])]
            if not failed:
                continue
            with database.temporary("failing") as failing:
                database.execute(
                    f"CREATE TEMP TABLE {failing} AS SELECT * FROM {relations[key]} "
                    f"WHERE {' OR '.join(f'({cause})' for cause in failed)}"
                )
                for asked, each in self._counted(database, failing, [a for c in possible for a in calls[c]]):
                    found.setdefault(asked.query, {})[asked.place] = each
        return found

    def _possible(self, key: str, bounds: Mapping[int, Bounds]) -> list[Call]:
        """What the bounds of a batch's columns do not rule out. Batches are much alike, and most are within
        bounds that were found to rule out everything."""
        safe = self._safe.get(key)
        if safe is not None and all(each.within(safe[index]) for index, each in bounds.items()):
            return []
        both = bounds if safe is None else {k: each.with_(safe[k]) for k, each in bounds.items()}
        if all(cannot_fail(call, both) for call in self._asked[key]):
            self._safe[key] = both
            return []
        return [call for call in self._asked[key] if not cannot_fail(call, bounds)]

    def know(self, outcomes: Mapping[str, Outcome]) -> None:
        """That a batch is done: what has a sample by now needs no other."""
        self._known |= {(query, place) for query, outcome in outcomes.items() for place in outcome.failed}

    def _counted(
        self, database: Database, rows: str, asked: Iterable[_Asked]
    ) -> Iterator[tuple[_Asked, Failed]]:
        alike: dict[tuple[object, ...], list[_Asked]] = {}
        for each in asked:
            alike.setdefault((each.shape, each.columns), []).append(each)
        for members in alike.values():
            with database.temporary("asking") as asking:
                _create_asking(database, asking, members)
                found = database.fetch(_statement(rows, asking, members[0]))
            for number, count, at_us, sample in found:
                member = members[number]
                is_known = (member.query, member.place) in self._known
                named = {name: sample[column] for name, column in member.columns}
                yield member, Failed(count, at_us, "" if is_known else sample_text(named))


def _create_asking(database: Database, name: str, members: Sequence[_Asked]) -> None:
    columns = dict.fromkeys(("number", "after_us", "until_us"), "BIGINT")
    columns |= {f"q{k}": type_to_duckdb(type_) for k, type_ in enumerate(members[0].shape.constants)}
    rows = (
        [*map(str, (number, each.after_us, each.until_us)), *map(literal_text, each.constants)]
        for number, each in enumerate(members)
    )
    create_table(database, name, columns, rows)


def _statement(rows: str, asking: str, asked: _Asked) -> str:
    """The rows of each asker, and the first of them, by event time and then by its columns."""
    references = [f"r.c{k}" for k in range(asked.shape.width)]
    references += [f"q.q{k}" for k in range(len(asked.shape.constants))]
    (term,) = asked.shape.terms
    values = ", ".join(f"{column} := r.{column}" for _, column in asked.columns) or "nothing := 0"
    first = f"struct_extract(min(struct_pack(t := r.t, row := struct_pack({values}))), 'row')"
    return (
        f"SELECT q.number, count(*), min(r.t), {first} FROM {rows} AS r JOIN {asking} AS q "
        f"ON r.t > q.after_us AND r.t <= q.until_us AND {to_duckdb(term, references)} GROUP BY q.number"
    )


def _outermost(calls: Iterable[Call], width: int) -> Iterator[Call]:
    """Calls that fail on every row on which any of these does."""
    alike: dict[Shape, list[tuple[tuple[Literal, ...], Call]]] = {}
    for call in calls:
        own = shaped(width, [call], [])
        alike.setdefault(own.shape, []).append((own.constants, call))
    for shape, members in alike.items():
        is_monotone = members[0][1].function in _MONOTONE
        if is_monotone and len(shape.constants) == 1 and _has_constant(members[0][1]):
            members.sort(key=lambda member: order(member[0][0]))
            members = [members[0], members[-1]]
        yield from dict.fromkeys(call for _, call in members)


def _has_constant(call: Call) -> bool:
    return any(isinstance(argument, Literal) for argument in call.arguments)


def _bounds(rows: pa.Table, calls: Mapping[Call, object]) -> dict[int, Bounds]:
    """Of all numbers that something is computed of, without NULLs and NaN."""
    columns = {index for call in calls for index in columns_of(call)}
    found = {}
    for index in columns:
        column = rows.column(index)
        if pa.types.is_integer(column.type) or column.type == pa.float64():
            least, greatest = pc.min_max(column).as_py().values()
            # A column without values has none on which anything could fail.
            found[index] = Bounds(1, 1) if least is None else Bounds(least, greatest)
    return found


def _that_are_true(database: Database, rows: str, conditions: Sequence[str]) -> Iterator[str]:
    """Of some row."""
    for part in _parts(conditions):
        items = ", ".join(f"bool_or({condition})" for condition in part)
        (values,) = database.fetch(f"SELECT {items} FROM {rows}")
        yield from (condition for condition, is_true in zip(part, values, strict=True) if is_true)


def _parts(items: Sequence[_Part]) -> Iterator[Sequence[_Part]]:
    return (items[k : k + _STATEMENT_SIZE] for k in range(0, len(items), _STATEMENT_SIZE))
