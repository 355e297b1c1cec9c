"""A run that goes on in the background, and the rows that a run has published."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from plait.api.difference import Difference, would_add, would_drop, would_merge
from plait.api.html import html_line, html_table
from plait.api.live import Changed, LiveQueries, Merged
from plait.api.notebook import shown_anew
from plait.api.rows import ResultRows
from plait.api.upkeep import wish
from plait.errors import PlaitError, Source
from plait.runtime import DEFAULT_STATE

if TYPE_CHECKING:  # loading these takes a moment, and not every call needs them
    from plait.runtime.analysis import Analysis
    from plait.runtime.load import Load
    from plait.runtime.run import Run
    from plait.runtime.snapshot import RunProgress
    from plait.runtime.tended import Tended


class Running:
    """A run that goes on in the background. Leaving a `with` block stops it at a batch boundary."""

    def __init__(self, run: Run, state: Path) -> None:
        self._run = run
        self._state = state

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; whether it has come. Raises what went wrong."""
        ended = self._run.wait(timeout)
        self._raise_error()
        return ended

    def stop(self) -> None:
        """End at the next batch boundary. A later run with the same state goes on from there."""
        self._run.stop()
        self._raise_error()

    def drain(self) -> None:
        """Process all that is there, close everything, and end."""
        self._run.drain()
        self._raise_error()

    def progress(self) -> RunProgress:
        """How far it has come, as plain values."""
        return self._run.snapshot()

    def statistics(self) -> Load:
        """How busy streams, fragments and queries are."""
        return self._run.load()

    def analyze(self, query: str) -> Analysis:
        """A query as it was planned, beside what was observed of it."""
        from plait.runtime.analysis import analyse

        self._run.write_statistics()
        return analyse(self._state, query)

    def batches(self, query: str) -> int:
        """How many micro-batches are done where a query is computed. One that was added is live when there is
        one more than `add` left behind."""
        return self._run.batches(query)

    def whole_batch_seconds(self) -> dict[str, dict[int, float]]:
        """How long recent micro-batches took with all that Spark does around them, by what ran them and their
        numbers."""
        return self._run.whole_batch_seconds()

    def queries(self) -> LiveQueries:
        """The queries as they are now, and since when."""
        return LiveQueries.from_json(self._run.listed())

    def watch(self, seconds: float | None = None, *, every: float = 1.0) -> None:
        """Show progress, `every` so many seconds anew, until the run ends, the time is over, or it is
        interrupted; the run goes on. In a notebook it is a table in one place, elsewhere a line each time."""
        show = shown_anew(self)
        deadline = monotonic() + (math.inf if seconds is None else seconds)
        with suppress(KeyboardInterrupt):
            while not self.has_ended and (left := deadline - monotonic()) > 0:
                show()
                self._run.wait(min(every, left))
        show()

    def add(self, path: str | Path) -> Changed:
        """Compute the queries of a file too, from the next micro-batches on, as one change."""
        from plait.language.limits import read_source

        return self._added(read_source(Path(path)), Path(path).absolute().parent)

    def add_text(self, text: str, name: str = "<sql>", base: Path | None = None) -> Changed:
        """The same of a text. Paths in it are relative to `base`, the current folder unless given."""
        return self._added(Source(name, text), base or Path.cwd())

    def drop(self, *queries: str, sure: bool = False) -> Changed:
        """Compute these queries no more, as one change. Their results stay. What others read is dropped only
        if that is `sure`."""
        return Changed.from_json(self._run.drop(queries, sure=sure).to_json())

    @property
    def merged_at_start(self) -> Merged:
        """What was merged when the run started."""
        return Merged.from_json(self._run.merged_at_start.to_json())

    def compact(
        self, *queries: str, older_than: str = "0 s", retain: str | None = None, dry_run: bool = False
    ) -> Tended:
        """Look after results now, as `plait.compact` does."""
        return self._run.compact(queries, wish(retain, older_than, dry_run))

    def merge(self) -> Merged:
        """Compute queries that came one by one as if they had come together, as far as that can be done. None
        loses or repeats a row."""
        return Merged.from_json(self._run.merge().to_json())

    def would_merge(self) -> Difference:
        """What `merge` would do, without doing it."""
        return would_merge(self._state)

    def would_add(self, path: str | Path) -> Difference:
        """What `add` would do, without doing it."""
        from plait.language.limits import read_source

        return would_add(self._state, read_source(Path(path)), Path(path).absolute().parent)

    def would_add_text(self, text: str, name: str = "<sql>", base: Path | None = None) -> Difference:
        """What `add_text` would do."""
        return would_add(self._state, Source(name, text), base or Path.cwd())

    def would_drop(self, *queries: str) -> Difference:
        """What `drop` would do."""
        return would_drop(self._state, queries)

    def _added(self, source: Source, folder: Path) -> Changed:
        from plait.runtime.changes import Addition

        return Changed.from_json(self._run.add(Addition(source, folder)).to_json())

    def results(self, query: str) -> ResultRows:
        """The rows that were published so far, and those that are kept in memory."""
        from plait.runtime.outlets import find

        outlet = find(self._state, query)
        return ResultRows.of(outlet, self._run.rows_in_memory(outlet.query))

    @property
    def has_ended(self) -> bool:
        return self._run.has_ended

    @property
    def error(self) -> PlaitError | None:
        """What went wrong so far. Queries that did not fail go on all the same."""
        return self._run.error

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run.stop()
        if kind is None:
            self._raise_error()

    def _raise_error(self) -> None:
        if self._run.error is not None:
            raise self._run.error

    def __repr__(self) -> str:
        from plait.runtime.progress import line

        return line(self.progress())

    def _repr_html_(self) -> str:
        from plait.runtime.progress import duration_text, remarks, tables

        now = self.progress()
        going_on = "ended" if self.has_ended else "running"
        head = html_line(f"{going_on}, {duration_text(now.seconds)}")
        shown = "".join(html_table(*table) for table in tables(now))
        return head + shown + "".join(map(html_line, remarks(now)))


def published(query: str, state: str | Path = DEFAULT_STATE, results: str | Path | None = None) -> ResultRows:
    """The rows of a query that a run with that state folder has published; of the SQL nothing is needed.

    `results` says where the folders of results are, if they were moved since.
    """
    from plait.runtime.outlets import find

    return ResultRows.of(find(Path(state), query, None if results is None else Path(results)))
