"""What a benchmark gives back: one JSON document of `figures` and `claims`.

Keys of figures say what they are and in which unit. A claim stands against a value of a paper, of a peer or
of a goal; one that does not hold says why. Charts show figures beside each other, and are files of their own.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias

from plait.picture.chart import Chart, Series

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
    charts: dict[str, Chart] = field(default_factory=dict)

    def draw(self, name: str, title: str, x_label: str, y_label: str, lines: Mapping[str, str]) -> None:
        """A chart of figures over the number in their keys, both logarithmic.

        `lines` has for each name the keys, with `{}` for the number. Only figures that are there are drawn,
        and none that was too small to measure: zero has no logarithm.

        >>> report = Report("sleep", False, {"seconds_for_1_nap": 5, "seconds_for_2_nap": 9})
        >>> report.draw("naps", "Naps", "naps", "seconds", {"I": "seconds_for_{}_nap", "you": "{}"})
        >>> report.charts["naps"].series
        (Series(name='I', points=((1, 5), (2, 9))),)
        """
        series = [Series(line, self._points(key)) for line, key in lines.items()]
        drawn = tuple(each for each in series if each.points)
        if drawn:
            self.charts[name] = Chart(title, x_label, y_label, drawn, log_x=True, log_y=True)

    def _points(self, key: str) -> tuple[tuple[float, float], ...]:
        pattern = re.escape(key).replace(re.escape("{}"), "([0-9]+)")
        found = ((re.fullmatch(pattern, each), value) for each, value in self.figures.items())
        return tuple(
            (int(match[1]), value)
            for match, value in found
            if match is not None and not isinstance(value, str) and value > 0 and int(match[1]) > 0
        )

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

    def run(self, quick: bool, observer: Observer) -> Report: ...
