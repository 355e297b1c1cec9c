"""When a run is killed: at a failpoint, or at a moment after its start.

A failpoint ends the Python process alone, as the system does when memory runs out: Spark's JVM sees its pipe
close and ends a little later. A kill from outside ends the whole process group at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from plait.failpoints import FAILPOINTS

# How often a failpoint is passed before it kills; those that are reached once in a run kill at once.
ONCE = ("state-created", "table-stored", "stopping")
# What runs get to whose queries stay the same, and whose results are not merged.
STEADY = tuple(
    name for name in FAILPOINTS if not name.startswith(("change", "exchange-")) and name != "results-removed"
)
# What runs get to that compute everything on Spark, from streams alone.
ON_SPARK = tuple(name for name in STEADY if name not in ("table-stored", "database-committed"))


@dataclass(frozen=True)
class AtFailpoint:
    """When a failpoint is reached for that time. With `leaves_jvm` the next start may meet the old JVM."""

    name: str
    number: int = 1
    leaves_jvm: bool = False

    def __str__(self) -> str:
        return f"at {self.name} ({self.number}.)" + (", leaving the JVM" if self.leaves_jvm else "")


@dataclass(frozen=True)
class AtMoment:
    """So many seconds after the start; with `while_stopping`, a moment after it was asked to stop then."""

    seconds: float
    while_stopping: bool = False

    def __str__(self) -> str:
        return f"after {self.seconds:.1f} s" + (", while stopping" if self.while_stopping else "")


Kill = AtFailpoint | AtMoment
_SOONER = 0.7


def sooner(kill: Kill) -> Kill:
    """A kill for a system that had ended before this one: how quick a machine is decides when that is, and
    how often a failpoint is passed."""
    if isinstance(kill, AtMoment):
        return replace(kill, seconds=kill.seconds * _SOONER)
    return replace(kill, number=max(1, kill.number - 1))


def kills_of_all_kinds(rng: random.Random, count: int, failpoints: Sequence[str] = STEADY) -> Iterator[Kill]:
    """Every failpoint once, in an order of chance, and moments while starting, running and stopping."""
    kills: list[Kill] = [
        AtFailpoint(name, 1 if name in ONCE else rng.randint(1, 4), leaves_jvm=rng.random() < 0.5)
        for name in failpoints
    ]
    while len(kills) < count:
        kills.append(AtMoment(rng.uniform(1, 30), while_stopping=len(kills) % 3 == 0))
    rng.shuffle(kills)
    yield from kills[:count]
