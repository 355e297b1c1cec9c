"""Row windows: the rows that they count, numbered per partition once the watermark has passed them.

Of each partition the last rows are kept: those that windows to come hold, and at least one, whose number says
how far counting has come.
"""

from __future__ import annotations

from plait.engines.duckdb import Database
from plait.engines.incremental.layout import Numbered


def number_rows(database: Database, store: Numbered, statement: str) -> None:
    """Add the rows that a statement gives, all of them after those that are numbered already."""
    columns = [f"c{k}" for k in range(len(store.node.types))]
    partition = [f"c{k}" for k in store.window.partition]
    same = " AND ".join(f"n.{c} IS NOT DISTINCT FROM k.{c}" for c in partition) or "true"
    grouping = f"GROUP BY {', '.join(partition)}" if partition else ""
    last = f"SELECT {', '.join([*partition, 'max(number) AS last'])} FROM {store.table} {grouping}"
    by_partition = f"PARTITION BY {', '.join(f'n.{c}' for c in partition)} " if partition else ""
    order = ", ".join(["n.t", *(f"n.{column} NULLS FIRST" for column in columns)])
    number = f"coalesce(k.last, 0) + row_number() OVER ({by_partition}ORDER BY {order})"
    items = ", ".join([*(f"n.{column}" for column in columns), "n.t", number])
    database.execute(
        f"INSERT INTO {store.table} SELECT {items} FROM ({statement}) AS n LEFT JOIN ({last}) AS k ON {same}"
    )


def delete_old_numbers(database: Database, store: Numbered, closing_from_us: int) -> None:
    """Delete rows that are in no window that closes at that event time or later."""
    partition = ", ".join(f"c{k}" for k in store.window.partition)
    over = f"OVER (PARTITION BY {partition})" if partition else "OVER ()"
    last = f"max(number) {over}"
    next_closing = f"coalesce(min(number) FILTER (WHERE t >= {closing_from_us}) {over}, {last} + 1)"
    kept_from = f"least({next_closing} - {store.window.rows - 1}, {last})"
    database.execute(
        f"DELETE FROM {store.table} WHERE rowid IN "
        f"(SELECT rowid FROM {store.table} QUALIFY number < {kept_from})"
    )
