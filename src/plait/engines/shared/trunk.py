"""Queries computed together, one micro-batch at a time, with their state in one DuckDB file. A query by
itself is computed in the same way.

A micro-batch is one transaction: what nothing needs any more is deleted, its rows are taken, the watermarks
move, results are published, and the batch is noted with what came of it. A batch that was interrupted is done
again from the same state; one that was done is recognised by its id.

Queries over the same set of streams are a group with one watermark, the least of its streams', so no query is
held back by a stream that it does not read. What a stream has brought is known for all groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from plait.batches import Batch, BatchRows, Outcome, Publish, row_counts
from plait.catalog import Stream
from plait.engines.duckdb import DEFAULT_MEMORY_BYTES, NO_SPACE, Database
from plait.engines.incremental.bands import closed_us
from plait.engines.incremental.state import KnownQuery, Progress, State, StateTable
from plait.engines.shared.culprits import culprits
from plait.engines.shared.failing_rows import FailingRows
from plait.engines.shared.group import Arrivals, Group, SharedQuery
from plait.engines.shared.looks import Looks
from plait.errors import ExternalError, InfeasibleError, PlaitError, QueriesFailedError
from plait.failpoints import reach
from plait.observations import NOTHING, HandedOver, Meter, Observed
from plait.plan.nodes import StreamScan, sources_of
from plait.plan.signature import signature
from plait.sharing import identity

_FAILURES = (ExternalError, InfeasibleError)


@dataclass(frozen=True)
class _Computed:
    """Queries over one set of streams."""

    read: frozenset[str]
    members: tuple[SharedQuery, ...]
    group: Group

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(query.name for query in self.members)


class _WellError(Exception):
    """A trial that went well is undone, too."""


class Trunk:
    """`streams` are all that are ever read; `scans` say which columns of each are handed over; `path` is the
    file. A batch may give `most_rows` of a statement, which is for many queries. `memory_bytes` may be set at
    any time, and counts from the next batch on; what does not fit is spilled beside the file."""

    def __init__(
        self,
        queries: Sequence[SharedQuery],
        streams: Mapping[str, Stream],
        scans: Mapping[str, StreamScan],
        path: Path,
        most_rows: int | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> None:
        self.memory_bytes = memory_bytes
        self._delays_us = {key: stream.delay_us for key, stream in streams.items()}
        self._state = State(path, memory_bytes, most_rows)
        self._database = self._state.database
        self._queries: Sequence[SharedQuery] = ()
        self._scans: Mapping[str, StreamScan] = scans
        self._computed: list[_Computed] = []
        self._open_in: Database | None = None  # where the operators have what they need
        self._gone: set[str] = set()  # operators that may be gone, by the beginnings of their tables' names
        self._looks = Looks()
        self.observed = NOTHING  # of the last batch
        try:
            self._state.check_queries(_known(queries))
            self.become(queries, scans)
            self.let_go()
        except BaseException:
            self.close()
            raise

    def become(self, queries: Sequence[SharedQuery], scans: Mapping[str, StreamScan]) -> None:
        """Compute these queries from the next batch on, over these columns of the streams.

        Those that were computed before go on. What others needed is still there until it is `let_go`, so that
        this can be taken back.
        """
        self._state.revive()
        self._database = self._state.database
        before = self._computed if self._open_in is self._database else ()
        self._open_in = None
        self._gone |= _operators(self._computed)
        computed = self._arranged(queries, scans, before)
        chosen = {name: part for each in computed for name, part in each.group.parts.items()}
        with self._database.transaction():
            self._state.take_up(_known(queries, chosen), _tables(computed))
            for each in computed:
                each.group.open(self._database)
        self._queries, self._scans, self._computed = queries, scans, computed
        self._open_in = self._database
        self._failing = FailingRows(queries, scans)

    def _arranged(
        self,
        queries: Sequence[SharedQuery],
        scans: Mapping[str, StreamScan],
        before: Iterable[_Computed] = (),
    ) -> list[_Computed]:
        """Queries in groups, over those columns of the streams; of operators from before, those that stay."""
        known = {each.read: each.group for each in before}
        return _computed(queries, scans, self._state.parts(), known)

    @property
    def meters(self) -> tuple[Meter, ...]:
        """Of all operators."""
        return tuple(meter for each in self._computed for meter in each.group.meters)

    def let_go(self) -> None:
        """Forget the queries that are not computed any more, and what was kept for them."""
        names = [name for each in self._computed for name in each.queries]
        self._state.keep_only(names, _tables(self._computed))
        self._database.drop_temporary(self._gone - _operators(self._computed), _operators(self._computed))
        self._gone = set()

    @property
    def seen_us(self) -> Mapping[str, int]:
        """How far each stream has come, by key: the greatest event time, or beat, of the batches done."""
        return self._state.progress().seen_us

    def apply(
        self, batch: Batch, rows: Mapping[str, pa.Table], beats: Mapping[str, int], publish: Publish
    ) -> Mapping[str, Outcome]:
        """Compute a micro-batch, publish its results and commit; what came of it for each query.

        Rows of a stream, by its key, have the columns of its scan as `c0`, `c1`, … and their event time `t`.
        `beats` are times that streams are known to have reached.
        """
        before = self._state.progress()
        self.observed = NOTHING
        if batch.id <= before.batch:
            return self._state.outcomes(batch.id)
        self._state.check_next(batch.id, before)
        self._database.limit_memory(self.memory_bytes)
        seen_us = _seen(before, rows, beats)
        try:
            with self._database.transaction():
                results, outcomes = self._given(self._computed, self._failing, batch, rows, before, seen_us)
                publish(results)
                self._state.record(batch.id, seen_us, outcomes)
        except _FAILURES as error:
            if error.code == NO_SPACE:
                raise  # whoever it was that came too late for the last of it
            failed = self._culprits(batch, rows, before, seen_us)
            # What all fail by is not theirs, unless each needs more by itself than there is.
            if failed and (
                len(failed) < len(self._queries)
                or all(isinstance(each, InfeasibleError) for each in failed.values())
            ):
                raise QueriesFailedError(failed) from error
            raise
        self._failing.know(outcomes)
        reach("database-committed")
        self.observed = self._observed(rows)
        return outcomes

    def _observed(self, rows: Mapping[str, pa.Table]) -> Observed:
        """What the batch has shown, which is committed."""
        looks = {id_: look for each in self._computed for id_, look in each.group.looks.items()}
        kept, columns = self._looks.taken(self._database, looks, self._scans, rows)
        return Observed(
            {key: HandedOver(table.num_rows, table.nbytes) for key, table in rows.items()},
            {meter.id: meter.taken() for meter in self.meters},
            kept,
            columns,
        )

    def _given(
        self,
        computed: Sequence[_Computed],
        failing: FailingRows,
        batch: Batch,
        rows: Mapping[str, pa.Table],
        before: Progress,
        seen_us: Mapping[str, int],
    ) -> tuple[list[BatchRows], dict[str, Outcome]]:
        """What queries give for a batch, within a transaction."""
        results: list[BatchRows] = []
        outcomes: dict[str, Outcome] = {}
        with ExitStack() as given:
            relations = {key: given.enter_context(self._database.given(table)) for key, table in rows.items()}
            arrived_rows = {key: table.num_rows for key, table in rows.items()}
            arrived = Arrivals(relations, batch.tables, arrived_rows)
            failed = failing.found(self._database, rows, relations)
            for each in computed:
                read, group = each.read, each.group
                earlier, later = self._watermark_us(read, before.seen_us), self._watermark_us(read, seen_us)
                late = self._late_rows(each, rows, earlier)
                given_rows = [*group.results(self._database, arrived, closed_us(earlier), closed_us(later))]
                results += given_rows
                counts = row_counts(given_rows)
                for name in each.queries:
                    outcomes[name] = Outcome(
                        counts.get(name, 0), late.get(name, {}), later, failed.get(name, {})
                    )
        return results, outcomes

    def _culprits(
        self,
        batch: Batch,
        rows: Mapping[str, pa.Table],
        before: Progress,
        seen_us: Mapping[str, int],
    ) -> dict[str, PlaitError]:
        """The queries that a batch fails by, and how: found by computing it with some of them at a time, and
        leaving everything as it was."""

        def tried(some: Sequence[SharedQuery]) -> PlaitError | None:
            self._open_in = None
            self._state.revive()
            self._database = self._state.database
            try:
                with self._database.transaction():
                    computed = self._arranged(some, self._scans)
                    for each in computed:
                        each.group.open(self._database)
                    failing = FailingRows(some, self._scans)
                    self._given(computed, failing, batch, rows, before, seen_us)
                    raise _WellError
            except _WellError:
                return None
            except _FAILURES as error:
                return error

        return {query.name: error for query, error in culprits(self._queries, tried)}

    def has_done(self, batch: int) -> bool:
        """Whether the batch is committed here: its rows are not needed again."""
        return batch <= self._state.progress().batch

    def check_between(self, committed: int | None, planned: int | None) -> None:
        """Refuse a state that ends before the last batch that Spark committed, or after the last planned."""
        self._state.check_between(-1 if committed is None else committed, -1 if planned is None else planned)

    def close(self) -> None:
        self._database.close()

    def _watermark_us(self, read: frozenset[str], seen_us: Mapping[str, int]) -> int | None:
        """The least of the streams' watermarks; none before each of them has one."""
        if not read <= seen_us.keys():
            return None
        return min(seen_us[key] - self._delays_us[key] for key in read)

    def _late_rows(
        self, computed: _Computed, rows: Mapping[str, pa.Table], watermark_us: int | None
    ) -> Mapping[str, Mapping[str, int]]:
        """How many rows each query has missed, by stream. Of one that is being handed over, those that came
        since are counted where it goes to."""
        if watermark_us is None:
            return {}
        late = {key: rows[key].filter(pc.field("t") < watermark_us) for key in computed.read if key in rows}
        found = dict(self._missed(computed.group, late))
        ending: dict[int, list[str]] = {}
        for query in computed.members:
            if query.until_us is not None and query.name in found:
                ending.setdefault(query.until_us, []).append(query.name)
        for until_us, names in ending.items():
            earlier = {key: table.filter(pc.field("t") <= until_us) for key, table in late.items()}
            counts = self._missed(computed.group, earlier)
            found |= {name: counts.get(name, {}) for name in names}
        return found

    def _missed(self, group: Group, late: Mapping[str, pa.Table]) -> Mapping[str, Mapping[str, int]]:
        if not any(table.num_rows for table in late.values()):
            return {}
        with ExitStack() as given:
            named = {}
            for key, table in late.items():
                numbered = table.append_column("id", pa.array(range(table.num_rows), pa.int64()))
                named[key] = given.enter_context(self._database.given(numbered))
            return group.late_rows(self._database, named)


def state_tables(
    queries: Sequence[SharedQuery], scans: Mapping[str, StreamScan]
) -> dict[str, frozenset[str]]:
    """The columns of all tables that queries need which come together, by the tables' names."""
    return {
        table.name: frozenset(table.columns)
        for each in _computed(queries, scans, {}, {})
        for table in each.group.tables()
    }


def _computed(
    queries: Sequence[SharedQuery],
    scans: Mapping[str, StreamScan],
    parts: Mapping[str, str],
    before: Mapping[frozenset[str], Group],
) -> list[_Computed]:
    by_streams: dict[frozenset[str], list[SharedQuery]] = {}
    for query in queries:
        read = frozenset(name.lower() for name in sources_of(query.plan)[0])
        by_streams.setdefault(read, []).append(query)
    return [
        _Computed(
            read,
            tuple(members),
            Group(f"g_{identity.of_streams(read)}_", members, scans, parts, before.get(read)),
        )
        for read, members in by_streams.items()
    ]


def _operators(computed: Iterable[_Computed]) -> set[str]:
    return {name for each in computed for name in each.group.operators}


def _tables(computed: Iterable[_Computed]) -> list[StateTable]:
    return [table for each in computed for table in each.group.tables()]


def _known(queries: Iterable[SharedQuery], parts: Mapping[str, str] | None = None) -> list[KnownQuery]:
    chosen = parts or {}
    return [
        KnownQuery(query.name, signature(query.plan), query.after_us, chosen.get(query.name))
        for query in queries
    ]


def _seen(before: Progress, rows: Mapping[str, pa.Table], beats: Mapping[str, int]) -> dict[str, int]:
    """How far each stream has come."""
    seen_us = dict(before.seen_us)
    times = [*beats.items()]
    times += [(key, pc.max(table["t"]).as_py()) for key, table in rows.items() if table.num_rows]
    for key, us in times:
        seen_us[key] = max(us, seen_us.get(key, us))
    return seen_us
