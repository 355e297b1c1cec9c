"""A stream as a fragment reads it: once, with all columns that any of its scans needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame

from plait.catalog import Catalog
from plait.plan.nodes import StreamScan


class RecordSource(Protocol):
    """Where rows come from: `spark.sources.Sources`."""

    def records(self, stream: str, columns: Sequence[str]) -> DataFrame: ...
    def beats_like(self, stream: str, columns: Sequence[str], beats: Path) -> DataFrame: ...


class StreamRows:
    """All `records` of the stream, and all `beats`: both with `columns`, `t` and `beat`, and the `reason` and
    the `record` of bad ones."""

    def __init__(
        self, name: str, scans: Iterable[StreamScan], catalog: Catalog, sources: RecordSource, beats: Path
    ) -> None:
        self.stream = catalog.stream(name)
        wanted = {field.name.lower() for scan in scans for field in scan.columns}
        asked = [column.name for column in self.stream.columns if column.name.lower() in wanted]
        self._places = {column.lower(): place for place, column in enumerate(asked)}
        self.columns = [f"c{place}" for place in range(len(asked))]
        self.records = sources.records(self.stream.name, asked)
        self.beats = sources.beats_like(self.stream.name, asked, beats)

    def columns_of(self, scan: StreamScan) -> list[str]:
        """The names that the columns of a scan have in the frame."""
        return [self.columns[self._places[field.name.lower()]] for field in scan.columns]


def scans_by_stream(scans: Iterable[StreamScan]) -> dict[str, list[StreamScan]]:
    """The scans of each stream, by the stream's key."""
    found: dict[str, list[StreamScan]] = {}
    for scan in scans:
        found.setdefault(scan.stream.lower(), []).append(scan)
    return found
