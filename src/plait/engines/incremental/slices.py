"""Cuts a band into slices, so that a statement never writes out very many rows.

A tick window writes a row once for every tick whose window holds it. While a query keeps up with its streams,
a batch has few ticks; when it has to catch up, or streams end, there may be thousands. Rows and ticks of a
band are counted, and a band that has too many is halved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plait.engines.duckdb import Database
from plait.engines.incremental.bands import Band, needed_of_inputs, ticks_within
from plait.engines.incremental.layout import Layout, Stage
from plait.engines.incremental.statements import tick_bounds, within
from plait.plan.nodes import Node, TickWindow, Window

# Rows that the tick windows of one statement write out.
MOST_WRITTEN_ROWS = 4_000_000


@dataclass(frozen=True)
class _Writing:
    """What a tick window writes for a band: how many rows, and its first and last tick that may have any."""

    rows: int
    first_tick_us: int
    last_tick_us: int


def slices(database: Database, layout: Layout, stage: Stage, band: Band) -> Iterator[Band]:
    """Bands that together are the band, in the order of time; none if nothing can come of it."""
    if band.is_empty:
        return
    bands = layout.bands(stage, band)
    if all(part.is_empty for part in layout.store_bands(stage, bands).values()):
        return
    writings = [
        _written(database, layout, stage, node, node.window, bands[node])
        for node in bands
        if isinstance(node, Window) and isinstance(node.window, TickWindow)
    ]
    most = max(writings, key=lambda writing: writing.rows, default=_NOTHING_WRITTEN)
    if most.rows <= MOST_WRITTEN_ROWS or most.first_tick_us >= most.last_tick_us:
        yield band
        return
    # Both halves have a tick: no window lies above another in a stage, so their ticks are those of its band.
    middle_us = (most.first_tick_us + most.last_tick_us) // 2
    yield from slices(database, layout, stage, Band(band.from_us, middle_us))
    yield from slices(database, layout, stage, Band(middle_us, band.until_us))


_NOTHING_WRITTEN = _Writing(0, 0, 0)


def _written(
    database: Database, layout: Layout, stage: Stage, node: Window, window: TickWindow, band: Band
) -> _Writing:
    if ticks_within(window, band).count <= 1:
        return _NOTHING_WRITTEN
    first, last = tick_bounds(window, band)
    (needed,) = needed_of_inputs(node, band)
    parts = [
        f"SELECT sum(greatest(0, ({last} - {first}) // {window.slide_us} + 1)) AS written, "
        f"min({first}) AS first, max({last}) AS last FROM {table} WHERE {within('t', needed)}"
        for table in _tables(layout, stage, node)
    ]
    ((rows, first_us, last_us),) = database.fetch(
        f"SELECT sum(written), min(first), max(last) FROM ({' UNION ALL '.join(parts)})"
    )
    return _NOTHING_WRITTEN if rows is None else _Writing(int(rows), first_us, last_us)


def _tables(layout: Layout, stage: Stage, node: Node) -> list[str]:
    """The stores that a window reads, itself or through filters, projections and unions."""
    store = layout.store_read_by(stage, node)
    if store is not None:
        return [store.table]
    return [table for source in layout.inputs_in(stage, node) for table in _tables(layout, stage, source)]
