"""What a run has done so far, as plain values: all that progress and summaries are written from.

Numbers count from the beginning of the state folder, over all its runs, unless they say otherwise: a reader
asks what is in the results, not what this process did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from plait.deployment.fragments import Way
from plait.errors import PlaitError
from plait.runtime.tended import Tended


class QueryState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(frozen=True)
class StreamProgress:
    """`watermark_us` is the greatest event time seen less the stream's delay, or what a heartbeat made of it;
    None before the first row. `bad_folder` holds the bad records, once there are any. `ahead_us` is how far
    rows have moved the watermark ahead of the clock, 0 if they have not. `changed_files` were changed after
    they had been read. `silent_since_us` is the clock when the last row came, of a stream that has brought
    none for a while; after `idle_timeout_us`, if there is one, it holds nobody back. `gone` is where its
    files should be, if that is not there."""

    name: str
    rows: int = 0
    rows_per_s: float = 0.0  # lately
    watermark_us: int | None = None
    bad_records: int = 0
    bad_folder: Path | None = None
    ahead_us: int = 0
    changed_files: tuple[str, ...] = ()
    silent_since_us: int | None = None
    idle_timeout_us: int | None = None
    gone: str | None = None


@dataclass(frozen=True)
class FailedExpression:
    """An expression of a query that failed, hence was NULL, on so many rows of a stream; the first of them,
    as JSON, and its event time."""

    expression: str
    stream: str
    rows: int
    sample: str
    at_us: int

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "sample": json.loads(self.sample)}


@dataclass(frozen=True)
class QueryProgress:
    """`results` says where the rows go, in words: a folder, the console, a format of Spark's. `guarantee` is
    what holds for the rows there. `waiting` says what is still open, if something `is_open`, or why there are
    no rows yet; it is empty where neither is the case. `held_back_by` is a stream that is behind the others
    that the query reads. `watermark_us` is the one that the query goes by. `failed` are expressions in the
    order in which they failed first. `handing_over_seconds` is how long the query's own place took for its
    rows of the last batch, or takes by now."""

    name: str
    way: Way
    results: str
    guarantee: str
    state: QueryState = QueryState.STARTING
    rows: int = 0
    rows_per_s: float = 0.0  # lately
    late_rows: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    failed: tuple[FailedExpression, ...] = ()
    batches: int = 0
    batch_seconds: float | None = None  # the last one
    handing_over_seconds: float = 0.0
    watermark_us: int | None = None
    waiting: str = ""
    is_open: bool = False
    held_back_by: str | None = None
    error: PlaitError | None = None


@dataclass(frozen=True)
class RunProgress:
    """`seconds` since this run began; `now_us` is the clock at which the snapshot was taken. The queries are
    as they are declared. Without a `trigger_seconds` a batch follows the other at once."""

    seconds: float
    now_us: int
    streams: tuple[StreamProgress, ...] = ()
    queries: tuple[QueryProgress, ...] = ()
    trigger_seconds: float | None = None
    tended: Tended = field(default_factory=Tended)  # what was done for the results, in this run
    put_off: tuple[str, ...] = ()  # what could not be done so far, and why

    @property
    def failed(self) -> tuple[QueryProgress, ...]:
        return tuple(query for query in self.queries if query.state is QueryState.FAILED)
