"""What of the machine's memory each part of a run may take, so that none starves the others.

An eighth is Java's heap, where Spark runs; a quarter is for all databases of a run together, which spill to
disk beyond that. The rest is for what no limit is set on (Arrow's tables, Java beside its heap, the system's
cache of files) and for others on the machine. Either has a least that it works with, and Java a most, beyond
which its pauses grow. A micro-batch takes files of a stream of a 64th at most, unless one alone is larger:
their rows are held as Arrow's tables, which may be ten times as large as a compressed file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

GIB = 1024**3

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class MemoryShares:
    java_heap_bytes: int
    databases_bytes: int
    files_bytes: int


def memory_shares(total_bytes: int | None = None) -> MemoryShares:
    """Of this machine, or of one with so much memory.

    >>> memory_shares(24 * GIB)
    MemoryShares(java_heap_bytes=3221225472, databases_bytes=6442450944, files_bytes=402653184)
    """
    total = memory_bytes() if total_bytes is None else total_bytes
    return MemoryShares(min(max(total // 8, GIB), 8 * GIB), max(total // 4, GIB // 2), total // 64)


def memory_bytes() -> int:
    """What there is, or less if this process was given less."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in _LIMITS:
        with suppress(OSError, ValueError):  # there is none
            found.append(int(Path(limit).read_text()))
    return min(found)
