"""Gives the rows of a batch to where each query's rows go.

Queries that name no place of their own, and are computed together, share files; each other has a sink. There
may be thousands of either, so the rows of a batch are sorted by where they go, once, and each sink is given a
slice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from types import MappingProxyType

import pyarrow as pa

from plait.batches import BatchRows
from plait.errors import ExternalError, PlaitError, QueriesFailedError, reported
from plait.runtime.results_folder import numbered
from plait.runtime.shared_results import SharedSink
from plait.runtime.sinks import Sink

_NOBODY = -1  # as the place where rows go


class Publisher:
    """`own` are sinks by the names of queries; each of the `shared` takes the rows of the queries named with
    it. `until` are batches from which on the rows of queries are left out: they are not wanted any more, and
    may have no sink.
    `series` are those that the batches are numbered in, where it is not the first."""

    def __init__(
        self,
        own: Mapping[str, Sink],
        shared: Sequence[tuple[frozenset[str], SharedSink]] = (),
        until: Mapping[str, int] = MappingProxyType({}),
        series: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.own = own
        self._until = until
        self._series = [series.get(min(queries), 0) for queries, _ in shared]
        self._series += [series.get(query, 0) for query in own]
        self.shared = [sink for _, sink in shared]
        groups = [*(queries for queries, _ in shared), *((query,) for query in own)]
        self._group_of = dict.fromkeys(until, _NOBODY)
        self._group_of |= {query: group for group, queries in enumerate(groups) for query in queries}
        self._seconds: dict[str, float] = {}  # that own places took for the last batch
        self._handing: tuple[str, float] | None = None  # whose rows are being handed over, and since when

    def silent(self, batch_id: int) -> frozenset[str]:
        """The queries whose rows are left out of a batch."""
        return frozenset(query for query, batch in self._until.items() if batch_id >= batch)

    def seconds_of(self, query: str) -> float:
        """How long the query's own place took for its rows of the last batch, or takes by now: 0 if it had
        none, or shares files. May be asked while a batch is published."""
        handing = self._handing
        if handing is not None and handing[0] == query:
            return monotonic() - handing[1]
        return self._seconds.get(query, 0.0)

    def publish(self, batch_id: int, results: Sequence[BatchRows]) -> None:
        """Hand over the rows of a batch. Should that fail half way, all of it is done again: without the
        queries whose own places it fails by, if there are others."""
        group_of = self._group_of
        if self._until:
            group_of = {**group_of, **dict.fromkeys(self.silent(batch_id), _NOBODY)}
        parts: dict[int, list[BatchRows]] = {}
        for result in results:
            for group, part in result.by_group(group_of):
                parts.setdefault(group, []).append(part)
        for group, shared in enumerate(self.shared):
            if group in parts:
                shared.publish(numbered(self._series[group], batch_id), parts[group])
        failed: dict[str, PlaitError] = {}
        seconds: dict[str, float] = {}
        for group, (query, sink) in enumerate(self.own.items(), start=len(self.shared)):
            if group in parts:
                rows = pa.concat_tables([part.rows for part in parts[group]])
                began = monotonic()
                self._handing = query, began
                try:
                    sink.publish(numbered(self._series[group], batch_id), rows)
                except ExternalError as error:
                    failed[query] = error
                finally:
                    self._handing = None
                seconds[query] = monotonic() - began
        self._seconds = seconds
        if failed and len(failed) == len(self._group_of):
            raise reported([*failed.values()])
        if failed:
            raise QueriesFailedError({query: _stopping(error) for query, error in failed.items()})


def _stopping(error: PlaitError) -> PlaitError:
    """Without the promise that a next start makes good: it does not for a query that is stopped."""
    return type(error)(error.code, error.message, detail=error.detail)
