"""Gives the rows of a batch to where each query's rows go.

Queries that name no place of their own, and are computed together, share files; each other has a sink.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from plait.batches import BatchRows
from plait.runtime.shared_results import SharedSink
from plait.runtime.sinks import Sink


class Publisher:
    """`own` are sinks by the names of queries; each of the `shared` takes the rows of the queries named with
    it."""

    def __init__(
        self, own: Mapping[str, Sink], shared: Sequence[tuple[frozenset[str], SharedSink]] = ()
    ) -> None:
        self.own = own
        self._shared = shared

    def publish(self, batch_id: int, results: Sequence[BatchRows]) -> None:
        """Hand over the rows of a batch. Should that fail half way, all of it is done again."""
        for queries, shared in self._shared:
            shared.publish(batch_id, [r.of(queries) for r in results if not queries.isdisjoint(r.queries)])
        for query, sink in self.own.items():
            tables = [r.of({query}).rows for r in results if query in r.queries]
            if tables:
                sink.publish(batch_id, pa.concat_tables(tables))
