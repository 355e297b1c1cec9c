"""How busy a running system is: what `plait top` shows of streams, fragments and queries.

Rows a second are those of the last ten seconds. What is behind is how long ago by the clock the watermark is:
of a stream its own, of a query the one that it goes by. Cost shares are of the last ten minutes
(`plait.runtime.cost_shares`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from plait.quantity_text import bytes_text, counted, number_text
from plait.runtime.cost_shares import cost_shares, fragment_shares
from plait.runtime.progress import duration_text
from plait.runtime.slots import Slot
from plait.runtime.snapshot import RunProgress
from plait.table_text import table_text

QUERIES_SHOWN = 20


@dataclass(frozen=True)
class StreamLoad:
    name: str
    rows: int
    rows_per_s: float
    watermark_us: int | None
    behind_seconds: float | None
    bad_records: int


@dataclass(frozen=True)
class FragmentLoad:
    """`batch_seconds` is of the last micro-batch, `mean_batch_seconds` of those of the last ten minutes."""

    name: str
    way: str
    queries: int
    batches: int
    batch_seconds: float | None
    mean_batch_seconds: float | None
    state_bytes: int | None
    cost_share: float


@dataclass(frozen=True)
class QueryLoad:
    name: str
    fragment: str
    state: str
    rows: int
    rows_per_s: float
    watermark_us: int | None
    behind_seconds: float | None
    cost_share: float


@dataclass(frozen=True)
class Load:
    """`seconds` since the run began; without `trigger_seconds` a batch follows the other at once. The queries
    with the greatest cost shares come first."""

    seconds: float
    trigger_seconds: float | None
    streams: tuple[StreamLoad, ...]
    fragments: tuple[FragmentLoad, ...]
    queries: tuple[QueryLoad, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Load:
        return cls(
            document["seconds"],
            document["trigger_seconds"],
            tuple(StreamLoad(**each) for each in document["streams"]),
            tuple(FragmentLoad(**each) for each in document["fragments"]),
            tuple(QueryLoad(**each) for each in document["queries"]),
        )

    def to_text(self, width: int | None = None, most_queries: int | None = None) -> str:
        shown = self.queries[:most_queries]
        streams = [
            [each.name, f"{each.rows:,}", number_text(each.rows_per_s), _duration(each.behind_seconds)]
            for each in self.streams
        ]
        fragments = [
            [
                each.name,
                each.way,
                f"{each.queries:,}",
                self._batch(each.batch_seconds),
                self._batch(each.mean_batch_seconds),
                "" if each.state_bytes is None else bytes_text(each.state_bytes),
                f"{each.cost_share:.1%}",
            ]
            for each in self.fragments
        ]
        queries = [
            [
                each.name,
                each.fragment,
                each.state,
                f"{each.rows:,}",
                number_text(each.rows_per_s),
                _duration(each.behind_seconds),
                f"{each.cost_share:.2%}",
            ]
            for each in shown
        ]
        parts = [
            table_text(_STREAMS, streams, numeric={1, 2, 3}, width=width),
            table_text(_FRAGMENTS, fragments, numeric={2, 3, 4, 5, 6}, width=width),
            table_text(_QUERIES, queries, numeric={3, 4, 5, 6}, width=width),
        ]
        more = len(self.queries) - len(shown)
        if more:
            parts[-1] += f"\n… and {counted(more, 'more query', 'more queries')}"
        return "\n\n".join(parts)

    def _batch(self, seconds: float | None) -> str:
        if seconds is None:
            return ""
        of = f" of {duration_text(self.trigger_seconds)}" if self.trigger_seconds else ""
        return f"{duration_text(seconds)}{of}"

    def __repr__(self) -> str:
        return self.to_text(most_queries=QUERIES_SHOWN)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


_STREAMS = ("stream", "rows", "rows/s", "behind")
_FRAGMENTS = ("fragment", "way", "queries", "last batch", "mean batch", "state", "cost share")
_QUERIES = ("query", "fragment", "state", "rows", "rows/s", "behind", "cost share")


def load(
    progress: RunProgress,
    fragments: Mapping[str, Mapping[str, Any]],
    computed_in: Mapping[str, str],
    recent: Mapping[str, Slot],
    gauges: Mapping[str, Mapping[str, float]],
) -> Load:
    """Of a run whose fragments are described like this, and whose queries are computed in these."""
    shares, of_fragments = cost_shares(fragments, recent), fragment_shares(recent)
    batches = {computed_in[query.name]: query for query in progress.queries if query.name in computed_in}

    def behind(watermark_us: int | None) -> float | None:
        return None if watermark_us is None else max(0, progress.now_us - watermark_us) / 1e6

    streams = [
        StreamLoad(
            each.name,
            each.rows,
            each.rows_per_s,
            each.watermark_us,
            behind(each.watermark_us),
            each.bad_records,
        )
        for each in progress.streams
    ]
    queries = [
        QueryLoad(
            each.name,
            computed_in.get(each.name, ""),
            str(each.state),
            each.rows,
            each.rows_per_s,
            each.watermark_us,
            behind(each.watermark_us),
            shares.get(each.name, 0.0),
        )
        for each in progress.queries
    ]
    loads = []
    for name, fragment in fragments.items():
        sums = recent[name].sums if name in recent else {}
        state_bytes = gauges.get(name, {}).get("state_bytes")
        number = sums.get("batches", 0)
        loads.append(
            FragmentLoad(
                name,
                fragment["way"],
                len(fragment["queries"]),
                batches[name].batches if name in batches else 0,
                batches[name].batch_seconds if name in batches else None,
                sums["seconds"] / number if number else None,
                None if state_bytes is None else int(state_bytes),
                of_fragments.get(name, 0.0),
            )
        )
    queries.sort(key=lambda each: -each.cost_share)
    return Load(progress.seconds, progress.trigger_seconds, tuple(streams), tuple(loads), tuple(queries))


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else duration_text(seconds)
