"""`plait bench sharing`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plait.benchmarks.report import Observer, Report


@dataclass(frozen=True)
class SharingBenchmark:
    name: ClassVar[str] = "sharing"
    summary: ClassVar[str] = "hundreds of queries together, against plain Spark and against one"

    def run(self, quick: bool, observer: Observer) -> Report:
        from plait.benchmarks.sharing.comparisons import compare  # loads PySpark

        return compare(quick, observer)
