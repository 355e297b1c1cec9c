"""The benchmark of queries that come and go: a small one of it."""

from __future__ import annotations

import pytest

from plait.benchmarks.living.benchmark import Extent, LivingBenchmark


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_small_system_lives() -> None:
    told: list[str] = []
    benchmark = LivingBenchmark(extents=(Extent(3, 2, 5.0), Extent(3, 2, 5.0)), queries=15, warm_s=1.0)
    report = benchmark.run(quick=False, observer=told.append)
    held = {claim.claim: claim.holds for claim in report.claims}
    assert held["the rows are those of the definition"], report.claims
    assert held["known shapes restart nothing"]
    assert report.figures["queries_compared"] == 18
    assert told[0] == "15 queries run; warming up"
