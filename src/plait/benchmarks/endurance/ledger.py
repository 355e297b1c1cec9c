"""Which queries there should be, and since when: what the system says is held against it.

A change that the system had no time to answer, because it was killed, is there as a whole or not at all:
which of both it is, is seen when it answers again. All else has to be as it was, whatever happened meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import time_ns

from plait.benchmarks.dropped import Standing
from plait.benchmarks.endurance.workload import Declared


@dataclass(frozen=True)
class Change:
    """Queries to be added, or the names of some to be dropped."""

    adds: tuple[Declared, ...] = ()
    drops: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        return "\n".join(query.sql for query in self.adds)


@dataclass
class Ledger:
    """Queries by the names that the system gave them: what they select, T0, and when those were dropped that
    are gone, by the clock. `standings` say how far queries were right before somebody asked for their end.
    `wrong` is what should not have been."""

    selects: dict[str, str] = field(default_factory=dict)
    after_us: dict[str, int | None] = field(default_factory=dict)
    gone_us: dict[str, int] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    _unanswered: Change | None = None

    @property
    def live(self) -> list[str]:
        return [name for name in self.selects if name not in self.gone_us]

    def made(self, change: Change, added: Mapping[str, int | None]) -> None:
        """A change was made; the system has told under which names, and since when."""
        selects = {query.name: query.select for query in change.adds}
        if {declared_name(name) for name in added} != selects.keys():
            self.wrong.append(f"asked for {', '.join(selects)}, got {', '.join(added)}")
        for name, after_us in added.items():
            self.selects[name] = selects[declared_name(name)]
            self.after_us[name] = after_us
        self._note_gone(change.drops)

    def not_answered(self, change: Change) -> None:
        """The system ended while it made the change, or before."""
        self._unanswered = change

    def compare(self, listed: Mapping[str, int | None]) -> None:
        """The system has said which queries there are, and their T0."""
        change, self._unanswered = self._unanswered or Change(), None
        before = {*self.live}
        new, missing = listed.keys() - before, before - listed.keys()
        if new and {declared_name(name) for name in new} == {query.name for query in change.adds}:
            self.made(change, {name: listed[name] for name in new})
        elif new:
            self.wrong.append(f"nobody added {', '.join(sorted(new))}")
        if missing and missing == {*change.drops}:
            self._note_gone(missing)
        elif missing:
            self.wrong.append(f"nobody dropped {', '.join(sorted(missing))}")
        for name in sorted(before & listed.keys()):
            if listed[name] != self.after_us[name]:
                self.wrong.append(f"T0 of {name} was {self.after_us[name]}, and is {listed[name]}")

    def _note_gone(self, names: Iterable[str]) -> None:
        self.gone_us |= dict.fromkeys(names, time_ns() // 1_000)


def declared_name(name: str) -> str:
    """
    >>> declared_name("q0007#2")
    'q0007'
    """
    return name.partition("#")[0]
