"""Keeps folders of results small: merges files, and removes rows, as queries and runs ask for.

What Spark may still run again is left alone: files of the last batch that it has committed, and of those
after it. A merged file never has to be written again, then, and no batch that was removed comes back.

Rows of some queries of a shared file are removed by writing it anew without them. Files with rows of nobody
else are unlinked.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from plait.catalog import AS_THEY_ARE, Keeping
from plait.errors import ExternalError, PlaitError
from plait.failpoints import reach
from plait.runtime import exchange
from plait.runtime.checkpoint import Checkpoint
from plait.runtime.folder_names import folder_name
from plait.runtime.merging import read_index, write_merged
from plait.runtime.outlets import Outlet
from plait.runtime.results_folder import BatchFile, batch_files, numbered, owner_of
from plait.runtime.tended import Tended
from plait.runtime.upkeep_plan import FEW_FILES, FILE_BYTES, Facts, Holding, Removal, removals, to_merge

# Whoever began to list a folder before another took its place has done so after that time.
GRACE_SECONDS = 2.0
_BATCHES_LEFT = 1  # committed ones, that are left as they are


@dataclass(frozen=True)
class Wish:
    """What is asked for: `for_all` holds for queries that ask for nothing else; `queries` are the only ones
    concerned, None are all. `least_files` are as many as are worth merging. If it `is_dry`, nothing is
    done."""

    for_all: Keeping = AS_THEY_ARE
    queries: frozenset[str] | None = None
    least_files: int = FEW_FILES
    is_dry: bool = False

    def to_json(self) -> dict[str, Any]:
        """For all queries."""
        return {"for_all": vars(self.for_all), "least_files": self.least_files, "is_dry": self.is_dry}

    @classmethod
    def from_json(cls, wish: Mapping[str, Any]) -> Wish:
        return cls(Keeping(**wish["for_all"]), None, int(wish["least_files"]), bool(wish["is_dry"]))

    def concerns(self, outlet: Outlet) -> bool:
        return self.queries is None or outlet.query in self.queries


class Tending:
    """The folders of results of one state. What was found out about files is remembered."""

    def __init__(self, state: Path, state_id: str) -> None:
        self._state = state
        self._state_id = state_id
        self._times: dict[BatchFile, tuple[int, int]] = {}
        self._present: dict[BatchFile, tuple[int, frozenset[str]]] = {}

    def clear(self, outlets: Iterable[Outlet]) -> None:
        """Remove what a process that was killed may have left."""
        for folder in {outlet.folder for outlet in outlets if outlet.folder is not None}:
            exchange.clear(folder, self._state)

    def once(self, outlets: Iterable[Outlet], wish: Wish, now_us: int, stop: Event) -> Tended:
        """Do some of what there is to do: of each folder what fits into a file or two."""
        outlets, done = [*outlets], Tended()
        together = frozenset(
            outlet.query for outlet in outlets if wish.concerns(outlet) and not outlet.keeping.has_limit
        )
        holdings = []
        for folder, members in _by_folder(outlets, wish).items():
            with _trouble(done, folder):
                holdings.append(self._holding(folder, members, wish))
        going: defaultdict[Path, list[Removal]] = defaultdict(list)
        with _trouble(done, self._state):
            size_bytes = wish.for_all.size_bytes
            for each in removals(holdings, together, size_bytes, now_us, self._queries_in):
                going[each[0].folder].append(each)
        left_over: list[tuple[Path, Path]] = []
        for holding in holdings:
            if stop.is_set():
                break
            with _trouble(done, holding.folder):
                self._tend(holding, going[holding.folder], wish, now_us, done, left_over)
        if left_over:
            stop.wait(GRACE_SECONDS)
            for place, folder in left_over:
                with _trouble(done, folder):
                    exchange.discard(place, folder)
        return done

    def _tend(
        self,
        holding: Holding,
        going: Sequence[Removal],
        wish: Wish,
        now_us: int,
        done: Tended,
        left_over: list[tuple[Path, Path]],
    ) -> None:
        """Remove what has to go, and write anew what has to be: some rows' files, or one for several."""
        parts: list[_Part] = []
        for _, facts, queries in going:
            if holding.owner is not None or self._queries_in(holding, facts.file) <= queries:
                self._remove(holding, facts, wish, done)
            elif not parts or sum(part.size_bytes for part in parts) + facts.size_bytes <= FILE_BYTES:
                parts.append(_Part((facts,), queries))
        touched = {facts.file for _, facts, _ in going}
        left = replace(holding, settled=[each for each in holding.settled if each.file not in touched])
        group = to_merge(left, now_us, wish.least_files)
        if group and _follow_each_other(group, holding.settled):
            parts.append(_Part(tuple(group), frozenset()))
        # Counted before anything is written, and told when it is.
        rows = [_rows_in(read_index(part.files[0].file, holding.owner), part.without) for part in parts]
        if parts and not wish.is_dry:
            left_over.append((self._rewritten(holding, parts), holding.folder))
        for part, removed in zip(parts, rows, strict=True):
            done.removed_rows.update(removed)
            if not part.without:
                done.merged_files += len(part.files)
                done.into_files += 1

    def _remove(self, holding: Holding, facts: Facts, wish: Wish, done: Tended) -> None:
        """Readers that have the file open keep it."""
        done.removed_rows.update(_rows_in(read_index(facts.file, holding.owner)))
        done.removed_files += 1
        done.removed_bytes += facts.size_bytes
        if not wish.is_dry:
            facts.file.path.unlink()
            reach("results-removed")
            facts.file.index.unlink(missing_ok=True)

    def _rewritten(self, holding: Holding, parts: Sequence[_Part]) -> Path:
        files = [facts.file for part in parts for facts in part.files]
        gone = {name for file in files for name in (file.path.name, file.index.name)}

        def write(folder: Path) -> None:
            for part in parts:
                write_merged([facts.file for facts in part.files], holding.owner, part.without, folder)

        return exchange.replaced(holding.folder, self._state, gone, write)

    def _holding(self, folder: Path, members: Mapping[str, Outlet], wish: Wish) -> Holding:
        first = next(iter(members.values()))
        owner = owner_of(folder)
        if owner is None or not owner.is_same(self._state_id, first.owner):
            raise ExternalError("results", f"{folder} is not the folder that this state has written to")
        facts = [self._facts(file) for file in batch_files(folder)]
        settled = self._settled_batches(members.values())
        keepings = {
            name: outlet.keeping.or_else(wish.for_all) if wish.concerns(outlet) else AS_THEY_ARE
            for name, outlet in members.items()
        }
        return Holding(
            folder,
            None if first.is_shared else first.query,
            keepings,
            [each for each in facts if each.file.last <= settled[each.file.series]],
            [each for each in facts if each.file.last > settled[each.file.series]],
        )

    def _settled_batches(self, outlets: Iterable[Outlet]) -> Mapping[int, float]:
        """The last batch of each series that Spark will not run again, for any of these."""
        last: defaultdict[int, float] = defaultdict(lambda: math.inf)
        for outlet in outlets:
            for series, fragment in outlet.writers.items():
                batch = self._settled_through(fragment)
                last[series] = min(last[series], batch if batch == math.inf else numbered(series, int(batch)))
        return last

    def _settled_through(self, fragment: str) -> float:
        """The last batch that Spark will not run again, whatever happens. Of a fragment that is gone it runs
        none."""
        folder = self._state / "fragments" / folder_name(fragment)
        if not folder.exists():
            return math.inf
        committed = Checkpoint(folder / "checkpoint").last_committed
        return -1 if committed is None else committed - _BATCHES_LEFT

    def _facts(self, file: BatchFile) -> Facts:
        stat = file.path.stat()
        if not file.is_merged:
            published_us = stat.st_mtime_ns // 1000
            return Facts(file, stat.st_size, published_us, published_us)
        if file not in self._times:
            limits = pc.min_max(read_index(file, None)["published_us"]).as_py()
            self._times[file] = (limits["min"] or 0, limits["max"] or 0)
        return Facts(file, stat.st_size, *self._times[file])

    def _queries_in(self, holding: Holding, file: BatchFile) -> frozenset[str]:
        """The queries that have rows in a file. It may have been written anew."""
        if holding.owner is not None:
            return frozenset([holding.owner])
        inode = file.path.stat().st_ino
        known = self._present.get(file)
        if known is None or known[0] != inode:
            found = frozenset(read_index(file, None)["query"].unique().to_pylist())
            known = self._present[file] = (inode, found)
        return known[1]


@dataclass(frozen=True)
class _Part:
    """Files that become one, or a single one that loses the rows of some queries."""

    files: tuple[Facts, ...]
    without: frozenset[str]

    @property
    def size_bytes(self) -> int:
        return sum(facts.size_bytes for facts in self.files)


def _rows_in(index: pa.Table, queries: Collection[str] | None = None) -> Counter[str]:
    """How many rows a file has of each query, or of some."""
    counts: Counter[str] = Counter()
    for query, rows in zip(index["query"].to_pylist(), index["rows"].to_pylist(), strict=True):
        if queries is None or query in queries:
            counts[query] += rows
    return counts


def _follow_each_other(group: Sequence[Facts], files: Sequence[Facts]) -> bool:
    """Whether no file is between two of the group."""
    begin = files.index(group[0])
    return [*files[begin : begin + len(group)]] == [*group]


@contextmanager
def _trouble(done: Tended, folder: Path) -> Iterator[None]:
    """What is wrong with a folder is told, and others are looked after."""
    try:
        yield
    except PlaitError as error:
        done.trouble[str(folder)] = error.message
    except (OSError, pa.ArrowException) as error:
        done.trouble[str(folder)] = f"{folder} cannot be looked after: {error}"


def _by_folder(outlets: Iterable[Outlet], wish: Wish) -> Mapping[Path, dict[str, Outlet]]:
    """The folders in which something is asked for, with all that have rows there."""
    found: defaultdict[Path, dict[str, Outlet]] = defaultdict(dict)
    wanted = set()
    for outlet in outlets:
        if outlet.folder is not None and outlet.folder.is_dir():
            found[outlet.folder][outlet.query] = outlet
            if wish.concerns(outlet) and outlet.keeping.or_else(wish.for_all) != AS_THEY_ARE:
                wanted.add(outlet.folder)
    return {folder: members for folder, members in found.items() if folder in wanted}
