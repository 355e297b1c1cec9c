"""A system that runs in another process, found through its state folder: its queries can be looked at,
added to, dropped, and stopped."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plait.api.difference import Difference, would_add, would_drop, would_merge
from plait.api.html import html_text
from plait.api.live import Changed, LiveQueries, Merged
from plait.api.running import published
from plait.errors import PlaitError, Source, UserError
from plait.runtime import DEFAULT_STATE

if TYPE_CHECKING:
    from plait.api.rows import ResultRows
    from plait.runtime.analysis import Analysis
    from plait.runtime.load import Load


class System:
    """The system that runs with a state folder. Each call asks it anew."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def queries(self) -> LiveQueries:
        return LiveQueries.from_json(self._ask({"do": "list"}))

    def add(self, path: str | Path) -> Changed:
        """Add the queries of a file, as one change."""
        from plait.language.limits import read_source

        return self._added(read_source(Path(path)), Path(path).absolute().parent)

    def add_text(self, text: str, name: str = "<sql>", base: Path | None = None) -> Changed:
        """Add the queries of a text. Paths in it are relative to `base`, the current folder unless given."""
        return self._added(Source(name, text), base or Path.cwd())

    def drop(self, *queries: str, sure: bool = False) -> Changed:
        """Drop queries, as one change. Their results stay. What others read is dropped only if that is
        `sure`."""
        return Changed.from_json(self._ask({"do": "drop", "queries": [*queries], "sure": sure}))

    def statistics(self) -> Load:
        """How busy streams, fragments and queries are."""
        from plait.runtime.load import Load

        return Load.from_json(self._ask({"do": "statistics"}))

    def analyze(self, query: str) -> Analysis:
        """A query as it was planned, beside what was observed of it; also of a system that has ended."""
        from plait.runtime.analysis import analyse

        with suppress(UserError):  # one that does not run has written what it knows
            self._ask({"do": "write statistics"})
        return analyse(self._state, query)

    def merge(self) -> Merged:
        """Compute queries that came one by one as if they had come together, as far as that can be done. None
        loses or repeats a row."""
        return Merged.from_json(self._ask({"do": "merge"}))

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

    def stop(self) -> None:
        """Let it end at the next batch boundary, and wait for that."""
        self._ask({"do": "stop"}, may_end=True)

    def results(self, query: str) -> ResultRows:
        """The rows that were published so far, also of queries that were dropped."""
        return published(query, self._state)

    def _added(self, source: Source, folder: Path) -> Changed:
        request = {"do": "add", "name": source.name, "text": source.text, "folder": str(folder.absolute())}
        return Changed.from_json(self._ask(request))

    def _ask(self, request: Mapping[str, Any], *, may_end: bool = False) -> Any:
        from plait.runtime.control import ask
        from plait.runtime.state import CONTROL

        return ask(self._state.absolute() / CONTROL, request, may_end=may_end)

    def __repr__(self) -> str:
        return f"System({str(self._state)!r})"

    def _repr_html_(self) -> str:
        try:
            return self.queries()._repr_html_()
        except PlaitError as error:
            return html_text(error.render())


def attach(state: str | Path = DEFAULT_STATE) -> System:
    """The system that runs with that state folder, in whatever process."""
    return System(Path(state))
