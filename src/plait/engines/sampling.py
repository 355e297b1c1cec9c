"""Statistics from stored data, for `plait check --sample`.

The rate of a stream is its rows over the time between its first and its last event; distinct values are
approximate (HyperLogLog, a few per cent off); the bytes of a row are those of its values. A relation without
stored data stays unknown, and so does the rate of a stream whose rows all have one event time.
"""

from __future__ import annotations

from types import MappingProxyType

from plait.catalog import Catalog, Relation, Stream
from plait.engines.duckdb import Database
from plait.engines.stored_files import load
from plait.expressions.types import Kind
from plait.statistics import Basis, Estimate, Key, Statistics, type_bytes

MICROSECONDS = 1_000_000


def sample(catalog: Catalog) -> Statistics:
    """What the stored data of all streams and tables says."""
    estimates: dict[Key, Estimate] = {}
    with Database() as database:
        for relation in (*catalog.streams.values(), *catalog.tables.values()):
            if relation.connector == "files":
                estimates |= _sample_relation(database, relation)
    return Statistics(MappingProxyType(estimates))


def _sample_relation(database: Database, relation: Relation) -> dict[Key, Estimate]:
    table = database.unused_name("sample")
    load(database, relation, table)
    distinct = [f"approx_count_distinct(c{index})" for index in range(len(relation.columns))]
    text_bytes = [
        f"coalesce(avg(strlen(c{index})), 0)"
        for index, column in enumerate(relation.columns)
        if column.type.kind is Kind.STRING
    ]
    span = _span_us(relation)
    ((rows, span_us, *numbers),) = database.fetch(
        f"SELECT count(*), {span}, {', '.join([*distinct, *text_bytes])} FROM {table}"
    )
    database.execute(f"DROP TABLE {table}")
    if not rows:
        return {}
    found: dict[str, float] = {}
    if isinstance(relation, Stream):
        if span_us:
            found["rate"] = (rows - 1) * MICROSECONDS / span_us
    else:
        found["rows"] = rows
    fixed = sum(type_bytes(c.type) for c in relation.columns if c.type.kind is not Kind.STRING)
    found["row_bytes"] = fixed + sum(numbers[len(distinct) :])
    for column, values in zip(relation.columns, numbers, strict=False):
        found[f"distinct.{column.name.lower()}"] = max(1, values)
    name = relation.name.lower()
    return {(name, key): Estimate(float(value), Basis.SAMPLED) for key, value in found.items()}


def _span_us(relation: Relation) -> str:
    """The time between the first and the last event, in SQL."""
    if not isinstance(relation, Stream):
        return "NULL"
    names = [column.name.lower() for column in relation.columns]
    time = f"c{names.index(relation.event_time.lower())}"
    return f"epoch_us(max({time})) - epoch_us(min({time}))"
