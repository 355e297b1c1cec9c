"""The benchmarks by name. Adding one is one module (or folder, with a README) and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from plait.benchmarks.aggregates_paper.benchmark import AggregatesPaperBenchmark
from plait.benchmarks.endurance.benchmark import EnduranceBenchmark
from plait.benchmarks.living.benchmark import LivingBenchmark
from plait.benchmarks.planning.benchmark import PlanningBenchmark
from plait.benchmarks.report import Benchmark, Claim, Observer, Report
from plait.benchmarks.sharing.benchmark import SharingBenchmark
from plait.benchmarks.soak.benchmark import SoakBenchmark

__all__ = ["BENCHMARKS", "Benchmark", "Claim", "Observer", "Report"]

BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType(
    {
        benchmark.name: benchmark
        for benchmark in (
            PlanningBenchmark(),
            SharingBenchmark(),
            LivingBenchmark(),
            SoakBenchmark(),
            EnduranceBenchmark(),
            AggregatesPaperBenchmark(),
        )
    }
)
