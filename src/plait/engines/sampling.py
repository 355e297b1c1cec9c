"""Statistics from stored data, for `--sample`.

Read are the first `SAMPLE_ROWS` rows of each relation, in the order of its files' names or as a generator
makes them, less the bad records. The rate of a stream is its rows over the time between its first and its
last event; the bytes of a row are those of its values. The rows of a table are counted, all of them. A
relation without stored data stays unknown, and so does the rate of a stream whose rows all have one event
time.

Where more is stored than was read, numbers of distinct values are at least those given; a notice says so.
"""

from __future__ import annotations

from types import MappingProxyType

from plait.catalog import Catalog, Relation, Stream
from plait.engines import stored_relations
from plait.engines.duckdb import Database
from plait.engines.event_times import set_bad_records_aside
from plait.expressions.types import Kind
from plait.notices import Notice
from plait.statistics import Basis, Estimate, Key, Statistics, type_bytes

SAMPLE_ROWS = 500_000
MICROSECONDS = 1_000_000


def sample(catalog: Catalog) -> Statistics:
    """What the stored data of all streams and tables says."""
    estimates: dict[Key, Estimate] = {}
    notices: list[Notice] = []
    with Database() as database:
        for relation in (*catalog.streams.values(), *catalog.tables.values()):
            if stored_relations.is_stored(relation):
                found = _sample_relation(database, relation, notices)
                name = relation.name.lower()
                estimates |= {
                    (name, key): Estimate(float(value), Basis.SAMPLED) for key, value in found.items()
                }
    return Statistics(MappingProxyType(estimates), tuple(notices))


def _sample_relation(database: Database, relation: Relation, notices: list[Notice]) -> dict[str, float]:
    with database.temporary("stored") as stored, database.temporary("sample") as good:
        # One row more, to see whether there are more.
        stored_relations.load(database, relation, stored, max_rows=SAMPLE_ROWS + 1)
        ((rows_read,),) = database.fetch(f"SELECT count(*) FROM {stored}")
        if rows_read > SAMPLE_ROWS:
            notices.append(
                Notice(
                    "sampled-in-part",
                    f"the statistics of `{relation.name}` come from its first {SAMPLE_ROWS:,} rows",
                    "declare what they do not show, such as greater numbers of distinct values",
                )
            )
        if not isinstance(relation, Stream):
            found = _measured(database, relation, stored)
            if found:
                whole = rows_read <= SAMPLE_ROWS
                found["rows"] = rows_read if whole else stored_relations.count(database, relation)
            return found
        bad_records = set_bad_records_aside(database, relation, stored, good, now=None)
        if bad_records:
            notices.append(
                Notice(
                    "bad-records",
                    f"{bad_records:,} of {rows_read:,} rows of `{relation.name}` are bad records, "
                    "by their event time: the statistics leave them out",
                )
            )
        found = _measured(database, relation, good)
        ((rows, span_us),) = database.fetch(f"SELECT count(*), max(t) - min(t) FROM {good}")
        if span_us:
            found["rate"] = (rows - 1) * MICROSECONDS / span_us
        return found


def _measured(database: Database, relation: Relation, table: str) -> dict[str, float]:
    """Bytes and distinct values (NULL is none) of a table; nothing if it has no rows."""
    distinct = [f"count(DISTINCT c{index})" for index in range(len(relation.columns))]
    text_bytes = [
        f"coalesce(avg(strlen(c{index})), 0)"
        for index, column in enumerate(relation.columns)
        if column.type.kind is Kind.STRING
    ]
    ((rows, *numbers),) = database.fetch(
        f"SELECT count(*), {', '.join([*distinct, *text_bytes])} FROM {table}"
    )
    if not rows:
        return {}
    fixed = sum(type_bytes(c.type) for c in relation.columns if c.type.kind is not Kind.STRING)
    found = {"row_bytes": fixed + sum(numbers[len(distinct) :])}
    for column, values in zip(relation.columns, numbers, strict=False):
        found[f"distinct.{column.name.lower()}"] = max(1, values)
    return found
