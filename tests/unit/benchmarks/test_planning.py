"""The planning benchmark on a small workload: what it plants, what it finds, what it writes down."""

from __future__ import annotations

import json

from plait.benchmarks import BENCHMARKS
from plait.benchmarks.planning.benchmark import PlanningBenchmark
from plait.benchmarks.planning.workload import Shared, generate_workload


def test_the_same_seed_makes_the_same_workload() -> None:
    assert generate_workload(24, seed=3) == generate_workload(24, seed=3)
    assert generate_workload(24, seed=3) != generate_workload(24, seed=4)


def test_half_of_the_queries_come_in_pairs_of_both_kinds() -> None:
    workload = generate_workload(100)
    queries = [statement for statement in workload.statements if "query" in statement.lower()[:60]]
    assert len(queries) == 100
    assert len(workload.pairs) == 25
    assert {pair.shared for pair in workload.pairs} == set(Shared)
    assert len({name for pair in workload.pairs for name in (pair.first, pair.second)}) == 50


def test_the_document_has_figures_and_claims() -> None:
    steps: list[str] = []
    report = PlanningBenchmark(sizes=(40,)).run(quick=True, observer=steps.append)
    document = report.to_json()
    assert document == json.loads(json.dumps(document))
    assert steps[0] == "making 40 queries"
    figures = document["figures"]
    assert figures["shared_pairs_planted_in_40_queries"] == 10
    assert figures["shared_pairs_found_over_planted"] == 1.0
    assert figures["pairs_of_one_signature_evaluated"] >= 8
    assert figures["pairs_of_one_signature_with_different_rows"] == 0
    together = figures["operators_of_40_queries_planned_together"]
    assert together < figures["operators_of_40_queries_planned_independently"]
    claims = {claim["claim"]: claim for claim in document["claims"]}
    assert claims["queries of one signature have the same rows"]["holds"]
    assert all(claim["holds"] or claim["why_not"] for claim in document["claims"])
    operators = {line.name: list(line.points) for line in report.charts["operators"].series}
    assert operators["planned together"] == [(40, together)]
    assert "charts" not in document


def test_benchmarks_are_registered_by_their_names() -> None:
    assert all(name == benchmark.name and benchmark.summary for name, benchmark in BENCHMARKS.items())
