"""Notes what micro-batches show, and writes it to the time series of the state folder.

A batch adds its numbers to the slot of its time, in memory. A thread of its own writes the slots every few
seconds, asks Spark how it is doing, and makes the documents that say what the numbers are of: batches wait
for none of that. What a crash leaves unwritten is lost; nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from time import time
from typing import Any

from plait.batches import Processed
from plait.engines.event_times import LAST_EVENT_TIME_US
from plait.observations import Observed
from plait.runtime.slots import Slot, by_fragment, together
from plait.runtime.statistics_file import LEVELS, SLOT_SECONDS, StatisticsFile, read

WRITE_SECONDS = 2.0
_THIN_SECONDS = 60.0

# Numbers of fragments that are asked for now and then, by fragment and name.
Gauges = Callable[[], Mapping[str, Mapping[str, float]]]
Documents = Callable[[], Mapping[str, Mapping[str, Any]]]


class Recorder:
    """The observations of a run. `gauges` is asked before each writing."""

    def __init__(self, path: Path, gauges: Gauges, clock: Callable[[], float] = time) -> None:
        self._path = path
        self._gauges = gauges
        self._clock = clock
        self._lock = Lock()
        self._writing = Lock()
        self._slots, _ = read(path)
        self._changed: set[tuple[int, str]] = set()
        self._marks_us: dict[str, dict[str, int]] = {}  # how far streams and queries of a fragment have come
        self._documents: Documents | None = None
        self._file = StatisticsFile(path)
        self._thinned_at = 0.0
        self._closed = Event()
        self._wanted = Event()
        self._thread = Thread(target=self._write_on, name="plait statistics", daemon=True)
        self._thread.start()

    def note(
        self,
        fragment: str,
        processed: Processed,
        watermarks_us: Mapping[str, int | None],
        whole_streams: Collection[str],
        observed: Observed,
        seconds: float,
    ) -> None:
        """A batch is done. `watermarks_us` are those of its queries; of `whole_streams` all rows came to the
        database."""
        begin_s = int(self._clock()) // SLOT_SECONDS * SLOT_SECONDS
        marks_us = {key: arrived.last_us for key, arrived in processed.arrived.items()}
        marks_us |= {query: watermarks_us.get(query) for query in processed.outcomes}
        rows = {key: arrived.rows for key, arrived in processed.arrived.items()}
        rows |= {query: outcome.rows for query, outcome in processed.outcomes.items()}
        # What an operator gives comes by the time of somebody else.
        marks_us |= {id_: marks_us.get(clock) for id_, clock in observed.clocks.items()}
        rows |= {id_: observed.work[id_].rows_out for id_ in observed.clocks}
        with self._lock:
            slot = self._slots.setdefault((begin_s, fragment), Slot())
            self._changed.add((begin_s, fragment))
            slot.count("batches", 1)
            slot.count("seconds", seconds)
            for key, arrived in processed.arrived.items():
                slot.count(f"read {key}", arrived.rows)
            self._marks_us[fragment] = _paced(slot, rows, self._marks_us.get(fragment, {}), marks_us)
            _add_observed(slot, observed, whole_streams)

    def describe(self, documents: Documents) -> None:
        """Say what the numbers are of: documents by kind and name, of all that there is. They are made when
        there is time."""
        self._documents = documents
        self._wanted.set()

    def recent(self) -> dict[str, Slot]:
        """What was observed in the last minutes of running, by fragment."""
        with self._lock:
            return by_fragment(self._slots)

    def write(self) -> None:
        """Write what is not written yet."""
        with self._writing:
            documents = self._documents
            if documents is not None:
                for kind, by_name in documents().items():
                    self._file.forget_but(kind, by_name)
                    self._file.describe(kind, by_name)
                if self._documents is documents:  # there are no newer ones
                    self._documents = None
            gauges = self._gauges()
            now_s = self._clock()
            with self._lock:
                for key in self._changed:
                    self._slots[key].last |= gauges.get(key[1], {})
                changed = {key: together([self._slots[key]]) for key in self._changed}
                self._changed.clear()
                newest_s = max((begin_s for begin_s, _ in self._slots), default=0)
                oldest_s = newest_s - LEVELS[0][1]
                self._slots = {key: slot for key, slot in self._slots.items() if key[0] >= oldest_s}
            self._file.put(changed)
            if now_s - self._thinned_at >= _THIN_SECONDS:
                self._file.thin(now_s)
                self._thinned_at = now_s

    def close(self) -> None:
        self._closed.set()
        self._wanted.set()
        self._thread.join()
        self._try_to_write()
        self._file.close()

    def _write_on(self) -> None:
        while not self._closed.is_set():
            self._wanted.wait(WRITE_SECONDS)
            self._wanted.clear()
            if not self._closed.is_set():
                self._try_to_write()

    def _try_to_write(self) -> None:
        # Whatever Spark or the disk has to say: that something is not noted never stops a run.
        with suppress(Exception):
            self.write()


def _paced(
    slot: Slot, rows: Mapping[str, int], before_us: Mapping[str, int], now_us: Mapping[str, int | None]
) -> dict[str, int]:
    """Count rows by the time that they have brought streams and queries on; how far these have come now."""
    reached_us = {}
    for name, mark_us in now_us.items():
        earlier_us = before_us.get(name)
        marks_us = [us for us in (earlier_us, mark_us) if us is not None]
        if not marks_us:
            continue
        reached_us[name] = max(marks_us)
        # Once the streams have ended, there is no rate.
        if earlier_us is not None and reached_us[name] <= LAST_EVENT_TIME_US:
            slot.count(f"paced {name}", rows[name])
            slot.count(f"span {name}", (reached_us[name] - earlier_us) / 1e6)
    return reached_us


def _add_observed(slot: Slot, observed: Observed, whole_streams: Collection[str]) -> None:
    for key, handed in observed.handed_over.items():
        slot.count(f"given {key}", handed.rows)
        slot.count(f"bytes {key}", handed.bytes)
    for id_, work in observed.work.items():
        slot.count(f"in {id_}", work.rows_in)
        slot.count(f"made {id_}", work.rows_made)
        slot.count(f"out {id_}", work.rows_out)
        slot.count(f"seconds {id_}", work.seconds)
        if work.bytes_moved:
            slot.count(f"moved {id_}", work.bytes_moved)
    for id_, kept in observed.kept.items():
        slot.last[f"kept {id_}"] = kept.rows
        if kept.groups is not None:
            slot.last[f"groups {id_}"] = kept.groups
        if kept.bytes is not None:
            slot.last[f"kept_bytes {id_}"] = kept.bytes
        for query, selected in kept.selected.items():
            slot.last[f"groups {query}"] = selected.groups
            if selected.rows_per_s is not None:
                slot.last[f"selected {query}"] = selected.rows_per_s
    for stream, columns in observed.columns.items():
        if stream in whole_streams:
            for name, values in columns.items():
                slot.last[f"distinct {stream} {name}"] = values.distinct
                if values.bytes is not None:
                    slot.last[f"bytes {stream} {name}"] = values.bytes
