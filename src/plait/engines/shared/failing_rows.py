"""The rows of a batch on which expressions of queries fail: counted, with the first of them.

Nothing is computed where nothing can fail. What can (`sharing.failing`) is looked at in three steps, each
only if the one before leaves something open:

1. The bounds of the columns, which Arrow tells quickly, rule out most of it: `v + 1` does not overflow if no
   `v` is near the end of its type, `a / b` has no zero to divide by.
2. One statement asks of each different expression that is left whether it fails on any row at all.
3. Of those that do, the rows are taken, and each query's conditions are applied to these alone.

However many queries have an expression, steps 1 and 2 look at it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from plait.batches import Failed, Outcome, sample_text
from plait.engines.duckdb import Database
from plait.engines.shared.group import SharedQuery
from plait.expressions.bounds import Bounds, cannot_fail
from plait.expressions.duckdb import to_duckdb
from plait.expressions.failing import fails
from plait.expressions.nodes import Call, columns_of, substitute_columns
from plait.plan.nodes import StreamScan
from plait.sharing.failing import checks

# So many aggregates in one statement: longer ones take longer to be planned than several.
_STATEMENT_SIZE = 200

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class _Asked:
    """What a query asks of the rows on which a call fails: its place among the checks of the query, a
    condition in SQL, and its columns with their names."""

    query: str
    place: int
    condition: str
    columns: Mapping[str, str]


class FailingRows:
    """`scans` say which columns of the streams are handed over, as `c0`, `c1`, … and `t`."""

    def __init__(self, queries: Sequence[SharedQuery], scans: Mapping[str, StreamScan]) -> None:
        self._asked: dict[str, dict[Call, list[_Asked]]] = {}
        for query in queries:
            for place, check in enumerate(checks(query.plan)):
                key = check.scan.stream.lower()
                scan = scans[key]
                names = [f"c{k}" for k in range(len(scan.columns))]
                places = [scan.columns.index(field) for field in check.scan.columns]
                call = substitute_columns(check.call, places.__getitem__)
                assert isinstance(call, Call)
                condition = to_duckdb(substitute_columns(check.condition, places.__getitem__), names)
                if query.after_us is not None:
                    condition = f"t > {query.after_us} AND {condition}"
                columns = {field.name: names[k] for field, k in zip(check.scan.columns, places, strict=True)}
                asked = _Asked(query.name, place, condition, columns)
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
            causes = {call: to_duckdb(fails(call), names) for call in possible}
            failed = [*_that_fail(database, relations[key], causes)]
            if not failed:
                continue
            with database.temporary("failing") as failing:
                any_of = " OR ".join(f"({causes[call]})" for call in failed)
                database.execute(
                    f"CREATE TEMP TABLE {failing} AS SELECT * FROM {relations[key]} WHERE {any_of}"
                )
                for asked, each in self._counted(database, failing, [a for c in failed for a in calls[c]]):
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
        self, database: Database, rows: str, asked: Sequence[_Asked]
    ) -> Iterator[tuple[_Asked, Failed]]:
        for part in _parts(asked):
            items = []
            for each in part:
                where = f"FILTER (WHERE {each.condition})"
                items += [f"count(*) {where}", f"min(t) {where}", self._sample(each, where)]
            (values,) = database.fetch(f"SELECT {', '.join(items)} FROM {rows}")
            for each, count, at_us, sample in zip(part, values[::3], values[1::3], values[2::3], strict=True):
                if count:
                    named = {} if sample is None else dict(zip(each.columns, sample.values(), strict=True))
                    yield each, Failed(count, at_us, "" if sample is None else sample_text(named))

    def _sample(self, asked: _Asked, where: str) -> str:
        """The first row, by event time and then by its columns."""
        if (asked.query, asked.place) in self._known:
            return "NULL"
        values = ", ".join(f"{column} := {column}" for column in asked.columns.values())
        return f"struct_extract(min(struct_pack(t := t, row := struct_pack({values}))) {where}, 'row')"


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


def _that_fail(database: Database, rows: str, causes: Mapping[Call, str]) -> Iterator[Call]:
    for part in _parts([*causes.items()]):
        items = ", ".join(f"bool_or({cause})" for _, cause in part)
        (values,) = database.fetch(f"SELECT {items} FROM {rows}")
        yield from (call for (call, _), does in zip(part, values, strict=True) if does)


def _parts(items: Sequence[_Part]) -> Iterator[Sequence[_Part]]:
    return (items[k : k + _STATEMENT_SIZE] for k in range(0, len(items), _STATEMENT_SIZE))
