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
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from plait.benchmarks.planning.data import random_rows
from plait.benchmarks.planning.workload import PlantedPair, PlantedWorkload, Shared, generate_workload
from plait.benchmarks.report import Claim, Observer, Report
from plait.deployment.deployment import Deployment
from plait.evaluator import StoredData, evaluate, same_rows
from plait.language import load_text
from plait.plan.nodes import Aggregate, Node, walk_plan
from plait.plan.signature import signature
from plait.planners.driver import plan
from plait.rewrite import canonicalise
from plait.workload import Workload

SECONDS_ALLOWED_A_QUERY = 0.01  # 1,000 queries in 10 s, 10,000 in 100 s
SAMPLED_PAIRS = 60
ROWS_A_SOURCE = 20


@dataclass(frozen=True)
class PlanningBenchmark:
    """`sizes` are the numbers of queries; a quick run takes the first."""

    name: ClassVar[str] = "planning"
    summary: ClassVar[str] = "seconds to plan 1,000 and 10,000 queries together; is all sharing found?"
    sizes: tuple[int, ...] = (1_000, 10_000)

    def run(self, quick: bool, observer: Observer) -> Report:
        report = Report(self.name, quick)
        planted_pairs = found_pairs = 0
        for queries in self.sizes[:1] if quick else self.sizes:
            observer(f"making {queries:,} queries")
            planted = generate_workload(queries)
            observer(f"planning {queries:,} queries")
            workload, deployment, plans = _measure(planted, queries, report)
            observer(f"planning {queries:,} queries each for itself")
            _compare_operators(workload, deployment, queries, report)
            observer("checking what the signatures found")
            planted_pairs += len(planted.pairs)
            found_pairs += _check_found(planted, plans, queries, report)
            if queries == self.sizes[0]:
                _check_rows(planted, workload, plans, report)
        report.figures["shared_pairs_found_over_planted"] = round(found_pairs / planted_pairs, 4)
        _draw(report)
        return report


def _measure(
    planted: PlantedWorkload, queries: int, report: Report
) -> tuple[Workload, Deployment, dict[str, Node]]:
    with _one_core():
        started, started_cpu = time.perf_counter(), time.process_time()
        workload = load_text(planted.text)
        loaded = time.perf_counter()
        planned = plan(workload, planner="plait")
        finished, finished_cpu = time.perf_counter(), time.process_time()
        plans = {name: canonicalise(query.plan) for name, query in workload.queries.items()}
        for root in plans.values():
            signature(root)
        canonicalised = time.perf_counter()
    took_s, took_cpu_s = finished - started, finished_cpu - started_cpu
    report.figures |= {
        f"plan_seconds_for_{queries}_queries": round(took_s, 2),
        f"plan_cpu_seconds_for_{queries}_queries": round(took_cpu_s, 2),
        f"parse_and_bind_seconds_for_{queries}_queries": round(loaded - started, 2),
        f"planner_and_driver_seconds_for_{queries}_queries": round(finished - loaded, 2),
        f"canonicalise_and_sign_seconds_for_{queries}_queries": round(canonicalised - finished, 2),
        f"peak_memory_mb_for_{queries}_queries": round(_peak_memory_mb()),
    }
    allowed_s = queries * SECONDS_ALLOWED_A_QUERY
    holds = took_s < allowed_s
    report.claims.append(
        Claim(
            f"plans {queries:,} queries in under {allowed_s:g} s on one core",
            source="goal",
            against=allowed_s,
            ours=round(took_s, 2),
            holds=holds,
            why_not="" if holds else f"it took {took_cpu_s:.1f} s of processor time; was the machine busy?",
        )
    )
    return workload, planned.deployment, plans


def _compare_operators(workload: Workload, deployment: Deployment, queries: int, report: Report) -> None:
    together = len(deployment.operators)
    independently = len(plan(workload, planner="independent").deployment.operators)
    report.figures |= {
        f"operators_of_{queries}_queries_planned_together": together,
        f"operators_of_{queries}_queries_planned_independently": independently,
        f"share_of_operators_saved_for_{queries}_queries": round(1 - together / independently, 3),
    }


def _check_found(planted: PlantedWorkload, plans: Mapping[str, Node], queries: int, report: Report) -> int:
    """How many of the planted pairs the signatures show."""
    missed = [pair for pair in planted.pairs if not _is_found(pair, plans)]
    found = len(planted.pairs) - len(missed)
    report.figures |= {
        f"shared_pairs_planted_in_{queries}_queries": len(planted.pairs),
        f"shared_pairs_found_in_{queries}_queries": found,
    }
    report.claims.append(
        Claim(
            f"signatures find all pairs that share in disguise among {queries:,} queries",
            source="goal",
            against=len(planted.pairs),
            ours=found,
            holds=not missed,
            why_not=", ".join(f"{pair.first} and {pair.second}" for pair in missed[:5]),
        )
    )
    return found


def _check_rows(
    planted: PlantedWorkload, workload: Workload, plans: Mapping[str, Node], report: Report
) -> None:
    sampled, differing = _evaluate_sample(planted, workload, plans)
    report.figures |= {
        "pairs_of_one_signature_evaluated": sampled,
        "pairs_of_one_signature_with_different_rows": len(differing),
    }
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


def _draw(report: Report) -> None:
    seconds = {
        "all that is timed": "plan_seconds_for_{}_queries",
        "parse and bind": "parse_and_bind_seconds_for_{}_queries",
        "planner and driver": "planner_and_driver_seconds_for_{}_queries",
    }
    report.draw("seconds", "Planning queries together, on one core", "queries", "seconds", seconds)
    operators = {
        "each query for itself": "operators_of_{}_queries_planned_independently",
        "planned together": "operators_of_{}_queries_planned_together",
    }
    report.draw("operators", "Operators of the plan", "queries", "operators", operators)


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
