"""What a run takes of the machine: memory and disk."""

from __future__ import annotations

import os
from pathlib import Path


def memory_mb() -> float:
    """Resident memory of this process and all below it: Python, Java and Spark's Python workers."""
    page_mb = os.sysconf("SC_PAGE_SIZE") / 1e6
    parents, pages = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(folder.name)], pages[int(folder.name)] = int(fields[1]), int(fields[21])
    total, family = 0, {os.getpid()}
    while family:
        total += sum(pages[pid] for pid in family)
        family = {pid for pid, parent in parents.items() if parent in family}
    return total * page_mb


def size_mb(folder: Path) -> float:
    total = 0
    for root, _, files in os.walk(folder):
        for file in files:
            try:
                total += (Path(root) / file).stat().st_size
            except OSError:  # deleted since
                continue
    return total / 1e6
