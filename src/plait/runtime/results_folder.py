"""A folder of results: one file a micro-batch, complete or not there, each batch once for any reader.

| name | what it is |
|---|---|
| `000000017.parquet`, `000000017.jsonl` | the rows of micro-batch 17; a batch without rows has no file |
| `000000000-000000063.parquet` | those of the batches 0 to 63, merged (`plait.runtime.merging`) |
| `2000000017.parquet` | the rows of micro-batch 17 of another series |
| `_index.000000000-000000063` | which of them are of which batch |
| `_draft.000000017.parquet.part` | the same while it is written; the next start removes it |
| `_plait.json` | whose rows these are: the id of the state folder and its path, and the query |

A draft is renamed when it is on the disk. A batch that is computed again after a crash replaces its file by
an equal one, so readers need no list of valid files and no lock. What begins with `_` or `.` is not for them:
Spark, pandas and Plait leave it out, and so does a pattern like `*.parquet`. The rows of two states never get
into one folder: batch 17 of one would replace batch 17 of the other.

A query that is handed over has rows from several fragments, each of which counts its batches: the files of
each are a **series** of their own, which the billions of their numbers say.

When files are merged, another folder takes the place of this one (`plait.runtime.exchange`). Who writes holds
it still meanwhile (`held`).
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import IO

from plait.durable_files import DRAFT, durable_file, flush_folder, write_durably
from plait.errors import ExternalError, UserError
from plait.failpoints import reach
from plait.runtime.state_key import StateKey, is_kept

MARKER = "_plait.json"
SERIES = 10**9  # as many batches as no fragment ever has
_PUBLISHED = re.compile(r"(\d{9,})(?:-(\d{9,}))?\.(parquet|jsonl)", re.ASCII)
_locks: defaultdict[Path, Lock] = defaultdict(Lock)  # of folders of this process


@dataclass(frozen=True)
class BatchFile:
    """The rows of the batches from `first` to `last`, as they are numbered: of one, or of several that were
    merged."""

    first: int
    last: int
    path: Path

    @property
    def series(self) -> int:
        return series_of(self.first)

    @property
    def is_merged(self) -> bool:
        return self.path.stem != _number(self.first)

    @property
    def index(self) -> Path:
        """Where it is said which rows of a merged file are of which batch."""
        return self.path.with_name(f"_index.{self.path.stem}")


def numbered(series: int, batch: int) -> int:
    """The number of a batch of a series.

    >>> numbered(0, 17), numbered(2, 17)
    (17, 2000000017)
    """
    return series * SERIES + batch


def series_of(number: int) -> int:
    return number // SERIES


def file_name(first: int, last: int, ending: str) -> str:
    """
    >>> file_name(17, 17, "parquet"), file_name(0, 63, "jsonl")
    ('000000017.parquet', '000000000-000000063.jsonl')
    """
    return f"{_number(first)}.{ending}" if first == last else f"{_number(first)}-{_number(last)}.{ending}"


def _number(batch: int) -> str:
    return f"{batch:09d}"


# By series, the last batch that was read.
NOTHING_READ: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True)
class Owner:
    """A query, or the name of all that share a folder, of a state."""

    state: StateKey
    query: str

    def is_same(self, state_id: str, query: str) -> bool:
        """Whether it is that query of that state, wherever the state is kept."""
        return (self.state.id, self.query) == (state_id, query)


def batch_files(folder: Path, after: Mapping[int, int] = NOTHING_READ) -> tuple[BatchFile, ...]:
    """The published files that have rows of batches after those, by series, in their order."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return ()  # nothing was published yet
    except OSError as error:
        raise ExternalError("results", f"cannot read {folder}: {error.strerror}") from None
    found = ((_PUBLISHED.fullmatch(name), name) for name in names)
    files = (BatchFile(int(m[1]), int(m[2] or m[1]), folder / name) for m, name in found if m)
    return tuple(sorted((f for f in files if f.last > after.get(f.series, -1)), key=lambda f: f.first))


class Merged:
    """Which batches have their rows in merged files by now. One that runs again all the same, from a state of
    an earlier day, has nothing to publish."""

    def __init__(self, folder: Path) -> None:
        self._last = {file.series: file.last for file in batch_files(folder) if file.is_merged}

    def has(self, number: int) -> bool:
        return number <= self._last.get(series_of(number), -1)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """No other folder takes the place of this one meanwhile, and no other thread of ours writes to it."""
    with _locks[folder]:
        yield


def check(folder: Path, state: StateKey, query: str) -> None:
    """Refuse the folder if it is somebody else's."""
    owner = Owner(state, query)
    with _reported(folder):
        before = owner_of(folder)
        if before != owner and folder.exists():
            _check_free(folder, before, owner)


def claim(folder: Path, state: StateKey, query: str) -> None:
    """Make the folder that of this query of this state; refuse it if it is somebody else's.

    Drafts of a process that was killed are removed.
    """
    check(folder, state, query)
    owner = Owner(state, query)
    with _reported(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if (before := owner_of(folder)) != owner:
            _mark(folder, before, owner)
        with held(folder):  # another fragment may be writing there
            for draft in folder.glob(f"{DRAFT}*"):
                draft.unlink()


def _mark(folder: Path, before: Owner | None, owner: Owner) -> None:
    document = {"state": owner.state.id, "query": owner.query, "folder": str(owner.state.path)}
    content = json.dumps(document, ensure_ascii=False).encode()
    if before is not None and before.is_same(owner.state.id, owner.query):
        write_durably(folder / MARKER, content)  # the state folder was moved
        return
    (folder / MARKER).unlink(missing_ok=True)
    try:
        with (folder / MARKER).open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:  # another run was faster
        _check_free(folder, owner_of(folder), owner)
    flush_folder(folder)


def publish(folder: Path, name: str, write: Callable[[IO[bytes]], object]) -> None:
    """A file that is there with all that `write` writes, also after a power cut, or not at all."""
    with _reported(folder / name), held(folder), durable_file(folder / name) as file:
        write(file)
        reach("results-drafted")
    reach("results-published")


def owner_of(folder: Path) -> Owner | None:
    """Whose rows are there; empty texts if that cannot be read."""
    try:
        marker = json.loads((folder / MARKER).read_bytes())
        return Owner(StateKey(str(marker["state"]), Path(marker["folder"])), str(marker["query"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return Owner(StateKey("", Path()), "")


def _check_free(folder: Path, before: Owner | None, owner: Owner) -> None:
    if before is not None and before.state.id == owner.state.id:
        if before.query == owner.query:
            return
        raise UserError(
            "results-shared",
            f"the results of query `{before.query}` go to {folder} already",
            hint=f"give it another with INTO: what `{before.query}` has given stays there",
        )
    rows_of_others = bool(batch_files(folder))
    if before is not None and (rows_of_others or _is_kept_elsewhere(before.state, owner.state)):
        which = f", {before.state.path}" if before.state.id else ""
        raise UserError(
            "results-of-another-state",
            f"{folder} is for the results of another state folder{which}",
            detail="every state folder counts its batches from 0: they would be mixed up",
            hint=f"go on from that state with --state DIR, write elsewhere with --results DIR,\n"
            f"or remove {folder} if its rows are no longer needed",
        )
    if rows_of_others or any(not path.name.startswith(("_", ".")) for path in folder.iterdir()):
        raise UserError(
            "results-folder-in-use",
            f"{folder} holds files that are no results of this state",
            hint="name an empty folder, or one that does not exist yet",
        )


def _is_kept_elsewhere(before: StateKey, now: StateKey) -> bool:
    return before.path != now.path and is_kept(before)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ExternalError(
            "results",
            f"cannot write {path}: {error.strerror or error}",
            hint="nothing is lost: mend it and start again, and the rows will be there",
        ) from None
