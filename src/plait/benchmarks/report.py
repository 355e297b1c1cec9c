"""What a benchmark gives back: one JSON document of `figures` and `claims`.

Keys of figures say what they are and in which unit. A claim stands against a value of a paper, of a peer or
of a goal; one that does not hold says why.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias

Figure: TypeAlias = float | int | str

# Is told what is being measured, as it begins.
Observer: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Claim:
    """`against` is the value to compare with, `source` whose it is."""

    claim: str
    source: str
    against: Figure
    ours: Figure
    holds: bool
    why_not: str = ""


@dataclass
class Report:
    """Filled while a benchmark runs."""

    benchmark: str
    quick: bool
    figures: dict[str, Figure] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "benchmark": self.benchmark,
            "quick": self.quick,
            "machine": {
                "system": f"{platform.system()} {platform.machine()}",
                "cores": os.cpu_count(),
                "python": platform.python_version(),
            },
            "figures": dict(self.figures),
            "claims": [asdict(claim) for claim in self.claims],
        }


class Benchmark(Protocol):
    """`summary` is the line that `plait bench` lists it by. `quick` measures less, for a first look."""

    name: ClassVar[str]
    summary: ClassVar[str]

    def run(self, quick: bool, observer: Observer) -> dict[str, Any]: ...
