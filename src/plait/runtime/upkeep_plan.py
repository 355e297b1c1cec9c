"""Decides which files of results are merged, and which rows are old enough, or too many, to go.

Files are merged that follow each other, from the oldest on: as many as together are not larger than one file
should be. The first of them is no larger than the others together, so a row is written again only when its
file has doubled: each a few times in its life. A file with a limit of age covers a tenth of that at most, so
that its rows do not stay much longer than the oldest of them should.

Age is counted from when a row was published. Size is that of files. A file goes when the last of its rows
may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plait.catalog import Keeping
from plait.runtime.results_folder import BatchFile

FILE_BYTES = 32_000_000  # what a merged file should have; it is in memory while it is written
FILES_AT_ONCE = 1000
FEW_FILES = 16  # of a running system: fewer are left alone
_PART = 10  # of a limit that a merged file may cover


@dataclass(frozen=True)
class Facts:
    """What there is to know of a file without opening it; of a merged one its index."""

    file: BatchFile
    size_bytes: int
    oldest_us: int
    newest_us: int


@dataclass(frozen=True)
class Holding:
    """A folder of results: the queries whose rows are there, with what holds for them, and its files that can
    be replaced (`settled`) or not yet. `owner` is the query of a folder that is not shared."""

    folder: Path
    owner: str | None
    queries: Mapping[str, Keeping]
    settled: Sequence[Facts]
    others: Sequence[Facts] = ()


# The queries that have rows in a file, as far as that matters.
Present = Callable[[Holding, BatchFile], frozenset[str]]
Removal = tuple[Holding, Facts, frozenset[str]]


def removals(
    holdings: Sequence[Holding],
    together: frozenset[str],
    size_bytes: int | None,
    now_us: int,
    present: Present,
) -> Iterator[Removal]:
    """Files, and whose rows in them have to go. `size_bytes` limits the queries that are in it `together`;
    others may have limits of their own."""
    due: dict[BatchFile, set[str]] = {}
    holders = {}
    for holding in holdings:
        for facts in holding.settled:
            holders[facts.file] = (holding, facts)
            due[facts.file] = {
                query
                for query, keeping in holding.queries.items()
                if keeping.age_us is not None and facts.newest_us < now_us - keeping.age_us
            }
        own_bytes = None if holding.owner is None else holding.queries[holding.owner].size_bytes
        if own_bytes is not None and holding.owner not in together:
            for _, facts in _too_many([(holding, each) for each in _all(holding)], own_bytes, due):
                due[facts.file] |= {*holding.queries}
    if size_bytes is not None:
        for holding, facts in _too_many(_counted(holdings, together, present), size_bytes, due):
            due[facts.file] |= holding.queries.keys() & together
    for file, queries in due.items():
        holding, facts = holders[file]
        if queries >= holding.queries.keys():
            yield holding, facts, frozenset(queries)
        elif queries and (going := present(holding, file) & queries):
            yield holding, facts, going


def _counted(
    holdings: Iterable[Holding], together: frozenset[str], present: Present
) -> list[tuple[Holding, Facts]]:
    """The files that have rows of these queries."""
    found = []
    for holding in holdings:
        members = holding.queries.keys() & together
        has_others = members != holding.queries.keys()
        for facts in _all(holding) if members else ():
            if not has_others or present(holding, facts.file) & members:
                found.append((holding, facts))
    return found


def _too_many(
    files: Sequence[tuple[Holding, Facts]], size_bytes: int, due: Mapping[BatchFile, object]
) -> Iterator[tuple[Holding, Facts]]:
    """The oldest of the files that can go, until the others are no more than that."""
    left = sum(facts.size_bytes for _, facts in files)
    for holding, facts in sorted(files, key=lambda each: (each[1].newest_us, each[1].file.first)):
        if left <= size_bytes:
            return
        if facts.file in due:
            left -= facts.size_bytes
            yield holding, facts


def _all(holding: Holding) -> list[Facts]:
    return [*holding.settled, *holding.others]


def to_merge(holding: Holding, now_us: int, least_files: int) -> Sequence[Facts]:
    """The files to make one of, the oldest first; none if it does not pay."""
    ages = [each.merge_after_us for each in holding.queries.values() if each.merge_after_us is not None]
    if not ages:
        return ()
    files = [each for each in holding.settled if each.newest_us <= now_us - min(ages)]
    limits = [each.age_us for each in holding.queries.values() if each.age_us is not None]
    sizes = [each.size_bytes for each in holding.queries.values() if each.size_bytes is not None]
    most_bytes = min([FILE_BYTES, *(size // _PART for size in sizes)])
    for begin in range(len(files)):
        end = _end_of_group(files, begin, most_bytes, limits, now_us)
        group = files[begin:end]
        if len(group) >= least_files and 2 * group[0].size_bytes <= sum(each.size_bytes for each in group):
            return group
    return ()


def _end_of_group(
    files: Sequence[Facts], begin: int, most_bytes: int, limits_us: Sequence[int], now_us: int
) -> int:
    """Behind the last file that still goes with the first."""
    total, end = 0, begin
    for facts in files[begin : begin + FILES_AT_ONCE]:
        total += facts.size_bytes
        if total > most_bytes or facts.file.series != files[begin].file.series:
            break
        # Limits that have passed do not matter: these rows are gone.
        longest_us = min((us for us in limits_us if facts.newest_us >= now_us - us), default=None)
        if longest_us is not None and facts.newest_us - files[begin].oldest_us > longest_us // _PART:
            break
        end += 1
    return end
