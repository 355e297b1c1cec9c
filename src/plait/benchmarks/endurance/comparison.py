"""The rows of every query that ever lived, beside those of its definition.

A query that is there to the end has all rows of its definition from its T0 on. One that was dropped has rows
of its definition alone, none twice, and all that were due by then (`plait.benchmarks.dropped`). What it has
seen came before it was dropped, so its definition is computed over the rows until then, in steps of some
minutes: hundreds of queries over all rows take hours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plait import language
from plait.api.system import System
from plait.benchmarks.dropped import wrong_until_dropped
from plait.benchmarks.endurance.ledger import Ledger
from plait.catalog import Catalog, Stream
from plait.errors import PlaitError
from plait.evaluator import StoredData, difference, evaluate
from plait.generators import feed
from plait.workload import Query

STEP_US = 300 * 1_000_000

_EPOCH = datetime(1970, 1, 1)

# Told after each query how many there are yet to compare.
Told: TypeAlias = Callable[[int], None]


@dataclass
class Compared:
    """How many rows the system gave, and the queries with others than those of their definitions."""

    rows: int = 0
    wrong: dict[str, str] = field(default_factory=dict)


def compare(ledger: Ledger, streams: str, system: System, told: Told) -> Compared:
    """All queries that ever lived."""
    # A query that came under a name once more has one that cannot be declared.
    declared = {name: f"compared_{number}" for number, name in enumerate(ledger.selects)}
    texts = [f"CREATE CONTINUOUS QUERY {declared[name]} AS {ledger.selects[name]};" for name in declared]
    workload = language.load_text(streams + "\n".join(texts))
    tables = _stored(workload.catalog)
    compared, left = Compared(), len(declared)
    for until_us, names in _by_end(ledger).items():
        with StoredData.from_tables(workload.catalog, _until(workload.catalog, tables, until_us)) as data:
            for name in names:
                try:
                    # Without a number it would be the last of that name.
                    given = system.results(name if "#" in name else f"{name}#1").rows
                    compared.rows += len(given)
                    found = _wrong(name, ledger, workload.query(declared[name]), data, given)
                except PlaitError as error:  # what was found of the others is worth telling all the same
                    found = f"not compared: {error}"
                if found:
                    compared.wrong[name] = found
                left -= 1
                told(left)
    return compared


def _by_end(ledger: Ledger) -> Mapping[int | None, list[str]]:
    """Queries by the moment before which all came that they can have seen; those that are there last."""
    groups: defaultdict[int | None, list[str]] = defaultdict(list)
    for name, gone_us in sorted(ledger.gone_us.items(), key=lambda item: item[1]):
        groups[-(-gone_us // STEP_US) * STEP_US].append(name)
    groups[None] = ledger.live
    return groups


def _wrong(name: str, ledger: Ledger, query: Query, data: StoredData, given: Sequence[Sequence[Any]]) -> str:
    after_us = ledger.after_us[name]
    start = None if after_us is None else _EPOCH + timedelta(microseconds=after_us)
    is_gone = name in ledger.gone_us
    wanted = evaluate(query, data, start=start, closed_only=is_gone)
    if is_gone:
        return wrong_until_dropped(query, wanted, given, ledger.standings[name.lower()])
    return difference(wanted.rows, given)


def _stored(catalog: Catalog) -> dict[str, pa.Table]:
    """All rows of streams and tables."""
    return {
        relation.name: _rows(relation) if isinstance(relation, Stream) else _file_rows(relation.options)
        for relation in (*catalog.streams.values(), *catalog.tables.values())
    }


def _rows(stream: Stream) -> pa.Table:
    if stream.connector == "files":
        return _file_rows(stream.options)
    source = feed(stream)
    assert source.start_us is not None
    assert source.end_us is not None
    return source.rows(source.start_us, source.end_us)


def _file_rows(options: Mapping[str, object]) -> pa.Table:
    return pq.read_table(Path(str(options["path"])))


def _until(catalog: Catalog, tables: Mapping[str, pa.Table], until_us: int | None) -> dict[str, pa.Table]:
    if until_us is None:
        return dict(tables)
    last = pa.scalar(until_us, pa.timestamp("us", "UTC"))
    return {
        name: rows.filter(pc.field(catalog.stream(name).event_time) <= last)
        if name in catalog.streams
        else rows
        for name, rows in tables.items()
    }
