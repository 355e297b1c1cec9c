"""Measures planning: seconds and memory for thousands of queries, and whether all that is shared is found.

What is timed is what `plait plan` does with a file of that many queries: parse, bind, canonicalise, plan,
check and cost the deployment again, in one process on one core. Making the queries is not timed.

Sharing is checked from both sides. Every planted pair must have one signature (or, where only a part is
shared, an aggregate of one signature in both plans). Pairs of one signature that were not planted are
evaluated over random rows, as many as the sample allows: none may differ.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations
from typing import Any, ClassVar

from plait.benchmarks.planning.data import random_rows
from plait.benchmarks.planning.workload import PlantedPair, PlantedWorkload, Shared, generate_workload
from plait.benchmarks.report import Claim, Observer, Report
from plait.evaluator import StoredData, evaluate, same_rows
from plait.language import load_text
from plait.plan.nodes import Aggregate, Node, walk_plan
from plait.plan.signature import signature
from plait.planners.driver import plan
from plait.rewrite import canonicalise
from plait.workload import Workload

# What planning must stay below, for its number of queries.
SECONDS_ALLOWED = {1_000: 10.0, 10_000: 100.0}
SAMPLED_PAIRS = 60
ROWS_A_SOURCE = 20


class PlanningBenchmark:
    name: ClassVar[str] = "planning"
    summary: ClassVar[str] = (
        "seconds to plan 1,000 and 10,000 queries together, and whether all sharing is found"
    )

    def run(self, quick: bool, observer: Observer) -> dict[str, Any]:
        report = Report(self.name, quick)
        for queries in (1_000,) if quick else (1_000, 10_000):
            observer(f"making {queries:,} queries")
            planted = generate_workload(queries)
            workload = self._measure(planted, queries, report, observer)
            if queries == 1_000:
                observer("checking what the signatures found")
                self._check_sharing(planted, workload, report)
        return report.to_json()

    def _measure(
        self, planted: PlantedWorkload, queries: int, report: Report, observer: Observer
    ) -> Workload:
        figures = report.figures
        observer(f"planning {queries:,} queries")
        with _one_core():
            started, started_cpu = time.perf_counter(), time.process_time()
            workload = load_text(planted.text)
            loaded = time.perf_counter()
            planned = plan(workload, planner="plait")
            finished, finished_cpu = time.perf_counter(), time.process_time()
            for query in workload.queries.values():
                signature(canonicalise(query.plan))
            canonicalised = time.perf_counter()
        took_s, took_cpu_s = finished - started, finished_cpu - started_cpu
        figures[f"plan_seconds_for_{queries}_queries"] = round(took_s, 2)
        figures[f"plan_cpu_seconds_for_{queries}_queries"] = round(took_cpu_s, 2)
        figures[f"parse_and_bind_seconds_for_{queries}_queries"] = round(loaded - started, 2)
        figures[f"canonicalise_and_sign_seconds_for_{queries}_queries"] = round(canonicalised - finished, 2)
        figures[f"planner_and_driver_seconds_for_{queries}_queries"] = round(finished - loaded, 2)
        figures[f"peak_memory_mb_for_{queries}_queries"] = round(_peak_memory_mb())

        observer(f"planning {queries:,} queries each for itself")
        independent = plan(workload, planner="independent")
        shared_operators = len(planned.deployment.operators)
        independent_operators = len(independent.deployment.operators)
        figures[f"operators_of_{queries}_queries_planned_together"] = shared_operators
        figures[f"operators_of_{queries}_queries_planned_independently"] = independent_operators
        figures[f"operators_saved_of_{queries}_queries"] = round(
            1 - shared_operators / independent_operators, 3
        )
        allowed = SECONDS_ALLOWED[queries]
        holds = took_s < allowed
        why_not = "" if holds else f"it took {took_cpu_s:.1f} s of processor time; was the machine busy?"
        report.claims.append(
            Claim(
                f"plans {queries:,} queries in under {allowed:.0f} s on one core",
                source="goal",
                against=allowed,
                ours=round(took_s, 2),
                holds=holds,
                why_not=why_not,
            )
        )
        return workload

    def _check_sharing(self, planted: PlantedWorkload, workload: Workload, report: Report) -> None:
        plans = {name: canonicalise(query.plan) for name, query in workload.queries.items()}
        missed = [pair for pair in planted.pairs if not _is_found(pair, plans)]
        found = len(planted.pairs) - len(missed)
        share = found / len(planted.pairs)
        report.figures["shared_pairs_planted"] = len(planted.pairs)
        report.figures["shared_pairs_found_over_planted"] = round(share, 4)
        report.claims.append(
            Claim(
                "signatures find every query or sub-plan that is shared in disguise",
                source="goal",
                against=1.0,
                ours=round(share, 4),
                holds=not missed,
                why_not=", ".join(f"{pair.first} and {pair.second}" for pair in missed[:5]),
            )
        )
        sampled, differing = _evaluate_sample(planted, workload, plans)
        report.figures["pairs_of_one_signature_evaluated"] = sampled
        report.figures["pairs_of_one_signature_with_different_rows"] = len(differing)
        report.claims.append(
            Claim(
                "queries of one signature have the same rows",
                source="goal",
                against=0,
                ours=len(differing),
                holds=not differing,
                why_not=", ".join(f"{first} and {second}" for first, second in differing[:5]),
            )
        )


def _is_found(pair: PlantedPair, plans: Mapping[str, Node]) -> bool:
    first, second = plans[pair.first], plans[pair.second]
    if pair.shared is Shared.WHOLE:
        return signature(first) == signature(second)
    aggregates = [
        {signature(node) for node in walk_plan(root) if isinstance(node, Aggregate)}
        for root in (first, second)
    ]
    return bool(aggregates[0] & aggregates[1])


def _evaluate_sample(
    planted: PlantedWorkload, workload: Workload, plans: Mapping[str, Node]
) -> tuple[int, list[tuple[str, str]]]:
    """Pairs of one signature evaluated, those that were not planted first; and the ones whose rows differ."""
    by_signature: dict[str, list[str]] = defaultdict(list)
    for name, root in plans.items():
        by_signature[signature(root)].append(name)
    pairs = [pair for names in by_signature.values() for pair in combinations(names, 2)]
    known = {(pair.first, pair.second) for pair in planted.pairs}
    rng = random.Random(1)
    rng.shuffle(pairs)
    sample = sorted(pairs, key=lambda pair: pair in known)[:SAMPLED_PAIRS]
    rows = random_rows(planted.catalog, rng, ROWS_A_SOURCE)
    differing = []
    with StoredData.from_rows(workload.catalog, rows) as data:
        for first, second in sample:
            results = [evaluate(workload.query(name), data).rows for name in (first, second)]
            if not same_rows(*results):
                differing.append((first, second))
    return len(sample), differing


@contextmanager
def _one_core() -> Iterator[None]:
    """Hold this process to one core, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _peak_memory_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
