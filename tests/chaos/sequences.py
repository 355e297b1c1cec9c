"""Sequences of changes under load, with kills: `python -m tests.chaos.sequences --count 60`.

Queries are added to a system, dropped from it and merged while rows arrive. In most of its lives it is killed
in the middle of a change: at a step of it, or at a moment; some starts are killed, too. In the end every
query that is there has the rows of its definition from the moment on at which it was added, and those that
are gone have all that were due by then, and no others.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from time import sleep

from tests.chaos.changes import ChangingSystem
from tests.differential.queries import KINDS, OVER_A_QUERY
from tests.differential.variants import ON_SPARK, with_variants
from tests.differential.workloads import random_workload

from plait.errors import PlaitError

LIVES = 3
ENDS = ("stop", "change-prepared", "change-recorded", "change-made", "moment", "moment")
KILLED_AT_START = 0.4
AT_START = ("changes-settled", "change-prepared", "change-recorded", "change-made", "change-recorded:2")
MERGES = 0.35
LONGEST_CHANGE_S = 0.6
# What is said of a system that was killed, before it was asked or while it was.
ENDED = ("control", "not-running")


def sequence(
    seed: int,
    folder: Path,
    *,
    lives: int = LIVES,
    ends: Sequence[str] = ENDS,
    killed_at_start: float = KILLED_AT_START,
) -> list[str]:
    """What is wrong after a sequence of changes. Every third one is on Spark alone."""
    rng = random.Random(seed)
    on_spark = seed % 3 == 2
    kinds = ON_SPARK if on_spark else [kind for kind in KINDS if kind != OVER_A_QUERY][seed % 2 :: 2]
    workload = with_variants(random_workload(seed, kinds, cuts=lives + 2), 1, rng)
    names = [query.name for query in workload.queries]
    living = ChangingSystem(workload, folder, len(names) // 2, "spark" if on_spark else "any")
    present: set[str] = set()
    for _ in range(lives):
        end = rng.choice(ends)
        if rng.random() < killed_at_start:
            living.killed_at_start(rng.choice(AT_START))
        failpoint = end if end.startswith("change-") else None
        merges = failpoint is None and rng.random() < 0.5
        with living.running(failpoint, is_killed=end == "moment", merges=merges) as kill:
            if end == "stop":
                present = living.note_starts()
                living.arrive()
                _changed(living, names, rng)()
                present = living.note_starts()
                continue
            with suppress(PlaitError):  # it may end sooner, when a merge is completed
                present = living.note_starts()
                living.arrive()
                change = Thread(target=_changed(living, names, rng))
                change.start()
                if end == "moment":
                    sleep(rng.uniform(0, LONGEST_CHANGE_S))
                    kill()
                change.join()
            with suppress(ProcessLookupError):
                kill()  # a change that had nothing to do has not come to the step at which it is killed
    with living.running(merges=rng.random() < 0.5):
        present = living.note_starts()
        living.arrive()
        living.arrive()
    living.drain()
    gone = [name for name in living.starts_us if name not in present]
    return [*living.refused, *living.wrong(sorted(present)), *living.wrong(gone, dropped=True)]


def _changed(living: ChangingSystem, names: list[str], rng: random.Random) -> Callable[[], None]:
    """A change of chance: what is there is known, what comes of it may not be."""
    there = sorted(query.name for query in living.system.queries())
    declared = {name.split("#")[0].lower() for name in there}  # spelled as it was declared
    missing = [name for name in names if name not in declared]
    merges = rng.random() < MERGES
    adds = bool(missing) and (len(there) < 3 or rng.random() < 0.6)
    some = rng.sample(missing, rng.randint(1, len(missing))) if adds else rng.sample(there, rng.randint(1, 2))

    def change() -> None:
        try:
            if merges:
                living.system.merge()
            elif adds:
                living.add(some)
            else:
                living.drop(*some)
        except PlaitError as error:
            if error.code not in ENDED:
                what = "merging" if merges else f"{'adding' if adds else 'dropping'} {some}"
                living.refused.append(f"{what}: {error.render()}")

    return change


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    wrong: list[str] = []
    for seed in range(asked.seed, asked.seed + asked.count):
        folder = Path(tempfile.mkdtemp(prefix="plait-changes-"))
        found = sequence(seed, folder)
        print(f"sequence {seed}: {'wrong, in ' + str(folder) if found else 'right'}", flush=True)  # noqa: T201
        print(*found, sep="\n\n", end="\n" * bool(found), flush=True)  # noqa: T201
        wrong += found
        if not found:
            shutil.rmtree(folder, ignore_errors=True)
    print("FAILED" if wrong else "all results are those of the definitions")  # noqa: T201
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
