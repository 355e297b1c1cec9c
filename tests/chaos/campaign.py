"""A campaign of kills: `python -m tests.chaos.campaign --kills 60`.

A system is started and killed, again and again, until it has run to its end; then its results must be those
of an undisturbed run and of the definition. Before that, whatever a reader finds must be part of them. When a
run ends before its kill, the next system begins with the same kill, sooner, until all have been done.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.kills import ON_SPARK, Kill, kills_of_all_kinds, sooner
from tests.chaos.runs import System, part_of
from tests.differential.harness import Rows, definition
from tests.differential.queries import KINDS
from tests.differential.variants import woven_workload
from tests.differential.workloads import RandomWorkload, random_workload

from plait.evaluator import difference

CUTS = 4
# Planners, and the classes of queries that they run: together, all of them; alone, half of them at a time.
# One more part has families of queries on Spark alone.
PARTS = (("plait", KINDS), ("plait", KINDS), ("independent", KINDS[::2]), ("independent", KINDS[1::2]))
UNMET_STARTS = 2  # a failpoint that two systems do not reach even once is not met by this workload


@dataclass(frozen=True)
class Report:
    """How many kills there were, those that no run lived to meet, and what was wrong."""

    kills: int
    unmet: tuple[Kill, ...]
    wrong: tuple[str, ...]


def campaign(
    workload: RandomWorkload,
    kills: Iterable[Kill],
    folder: Path,
    *,
    planner: str,
    engines: str = "any",
    undisturbed: bool = True,
    tell: Callable[[str], None] = print,
) -> Report:
    """`undisturbed`: begin with a run that nobody kills."""
    sql = workload.write(folder / "workload")
    expected = definition(workload)
    waiting, unmet, wrong = deque(kills), list[Kill](), list[str]()
    done = systems = unmet_starts = 0
    if undisturbed:
        system = System(sql, folder / "undisturbed", planner, engines)
        ended = system.run()
        if not ended.well:
            return _failed(0, waiting, system, ended.output, ended.code)
        wrong += _wrong("undisturbed", system, expected)
    while waiting and not wrong:
        systems += 1
        system = System(sql, folder / f"system-{systems}", planner, engines)
        before = done
        finished = False
        while not finished and waiting:
            ended = system.run(waiting[0])
            if ended.killed:
                done, unmet_starts = done + 1, 0
                tell(f"kill {done}: {waiting.popleft()}")
                wrong += _not_part(system, expected)
            elif ended.stopped:
                continue  # it was quicker than the kill, and goes on at the next start
            elif not ended.well:
                return _failed(done, waiting, system, ended.output, ended.code)
            finished = not ended.killed
        if not finished:
            ended = system.run()
            if not ended.well:
                return _failed(done, waiting, system, ended.output, ended.code)
        system.close()
        wrong += _wrong(system.folder.name, system, expected)
        if done == before:
            unmet_starts += 1
            if unmet_starts >= UNMET_STARTS and sooner(waiting[0]) == waiting[0]:
                unmet.append(waiting.popleft())
                unmet_starts = 0
            else:
                waiting[0] = sooner(waiting[0])
    return Report(done, tuple(unmet), tuple(wrong))


def _failed(done: int, waiting: Iterable[Kill], system: System, output: str, code: int) -> Report:
    system.close()
    return Report(
        done, tuple(waiting), (f"start {system.starts} of {system.folder} ended with {code}:\n{output}",)
    )


def _wrong(name: str, system: System, expected: Rows) -> list[str]:
    found = {query: difference(rows, system.rows(query)) for query, rows in expected.items()}
    return [f"{name}, {query}:\n{text}" for query, text in found.items() if text]


def _not_part(system: System, expected: Rows) -> list[str]:
    return [
        f"{system.folder.name}, {query}: after a kill, a reader finds rows that are not in the result"
        for query, rows in expected.items()
        if not part_of(system.rows(query), rows)
    ]


@dataclass(frozen=True)
class _Part:
    workload: RandomWorkload
    planner: str
    engines: str
    kills: Sequence[Kill]


def _parts(seed: int, count: int) -> Iterator[_Part]:
    """Together, they have so many kills."""
    rng = random.Random(seed)
    on_spark = count // (len(PARTS) + 1)
    kills = list(kills_of_all_kinds(rng, count - on_spark))
    for number, (planner, kinds) in enumerate(PARTS):
        workload = random_workload(seed * len(PARTS) + number, kinds, cuts=CUTS)
        workload = workload.of_parquet() if number % 2 else workload
        yield _Part(workload, planner, "any", kills[number :: len(PARTS)])
    workload = woven_workload(seed, cuts=CUTS)
    yield _Part(workload, "plait", "spark", list(kills_of_all_kinds(rng, on_spark, ON_SPARK)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engines", choices=("any", "spark"), help="only the parts that run on these")
    parser.add_argument("--keep", action="store_true", help="leave the folders of a failed campaign")
    asked = parser.parse_args()
    ok = True
    for part in _parts(asked.seed, asked.kills):
        if asked.engines not in (None, part.engines):
            continue
        folder = Path(tempfile.mkdtemp(prefix="plait-chaos-"))
        queries = f"{len(part.workload.queries)} queries, {part.planner}, engines {part.engines}"
        print(f"{queries}, {len(part.kills)} kills, in {folder}", flush=True)  # noqa: T201
        report = campaign(part.workload, part.kills, folder, planner=part.planner, engines=part.engines)
        for line in (*(f"not met: {kill}" for kill in report.unmet), *report.wrong):
            print(line)  # noqa: T201
        ok = ok and not report.wrong and not report.unmet
        if not (report.wrong and asked.keep):
            shutil.rmtree(folder, ignore_errors=True)
    print("all results are those of the undisturbed run and of the definition" if ok else "FAILED")  # noqa: T201
    raise SystemExit(not ok)


if __name__ == "__main__":
    main()
