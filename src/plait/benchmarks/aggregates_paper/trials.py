"""Plans every workload with every optimizer, on all cores, and keeps what the plans cost.

A further optimizer is one more name in `CONTESTANTS`; what it is compared with, the best of the paper's
thirteen, stays the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from time import perf_counter
from types import MappingProxyType

from plait.benchmarks.aggregates_paper.workload import Configuration, problem
from plait.planners.weaving import OPTIMIZERS, OTHER_READINGS, OWN_OPTIMIZERS, Optimizer

CONTESTANTS: Mapping[str, Optimizer] = MappingProxyType({**OPTIMIZERS, **OWN_OPTIMIZERS, **OTHER_READINGS})


@dataclass(frozen=True)
class Outcome:
    """Of one plan. `seconds` is what making it took, from windows to trees with costs."""

    total_cost: float
    max_cost: float
    trees: int
    seconds: float


@dataclass(frozen=True)
class Trial:
    """The plans of all contestants for one workload."""

    configuration: Configuration
    seed: int
    outcomes: Mapping[str, Outcome]


def plan_one(name: str, configuration: Configuration, seed: int) -> Outcome:
    # A problem of its own: what one optimizer computes about edges does not help the next.
    given = problem(configuration, seed)
    started = perf_counter()
    plan = CONTESTANTS[name](given, seed)
    seconds = perf_counter() - started
    return Outcome(plan.total_cost, plan.max_cost, len(plan.trees), seconds)


def trials(
    configurations: Sequence[Configuration], seeds: Sequence[int], processes: int = 0
) -> Iterator[Trial]:
    """One after the other, in the order of configurations and seeds."""
    workloads = [(configuration, seed) for configuration in configurations for seed in seeds]
    processes = processes or os.cpu_count() or 1
    if processes == 1:
        yield from map(_trial, workloads)
        return
    # Workers begin anew: a copy of a process with threads, such as numpy's, may stop for good.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_trial, workloads, chunksize=4)


def _trial(workload: tuple[Configuration, int]) -> Trial:
    plan = partial(plan_one, configuration=workload[0], seed=workload[1])
    return Trial(*workload, {name: plan(name) for name in CONTESTANTS})
