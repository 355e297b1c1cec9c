"""What a run takes of the machine: memory, open files and threads of its processes, and disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6


@dataclass(frozen=True)
class ProcessUse:
    """Of one process. Memory is what is resident."""

    program: str
    parent: int
    memory_mb: float
    threads: int


def memory_mb() -> float:
    """Resident memory of this process and all below it: Python, Java and Spark's Python workers."""
    return sum(use.memory_mb for use in processes_below(os.getpid()).values())


def processes_below(pid: int) -> dict[int, ProcessUse]:
    """A process and all below it, by their numbers; none if it has ended."""
    all_uses = dict(_processes())
    found: dict[int, ProcessUse] = {}
    family = {pid} & all_uses.keys()
    while family:
        found |= {member: all_uses[member] for member in family}
        family = {child for child, use in all_uses.items() if use.parent in family}
    return found


def _processes() -> Iterator[tuple[int, ProcessUse]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            begin, _, end = (folder / "stat").read_text().rpartition(")")
            fields = end.split()
            program = begin.partition("(")[2]
            use = ProcessUse(program, int(fields[1]), int(fields[21]) * _PAGE_MB, int(fields[17]))
            yield int(folder.name), use


def open_files(pid: int) -> int:
    """How many files, sockets and pipes a process has open; none if it has ended."""
    with suppress(OSError):
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return 0


def files_below(folder: Path) -> Iterator[tuple[Path, int]]:
    """All files of a folder and of those in it, with their bytes."""
    for root, _, files in os.walk(folder):
        for file in files:
            path = Path(root) / file
            with suppress(OSError):  # deleted since
                yield path, path.stat().st_size


def size_mb(folder: Path) -> float:
    return sum(size for _, size in files_below(folder)) / 1e6
