"""Changes the queries of a system every ten seconds, and kills it every few minutes.

Those that are dropped are old ones: so a query lives for some twenty minutes, and what queries take that came
one by one, which is more than those take that were begun with, is there when it is first compared. Some
queries stay to the end.

A kill comes at a moment of chance; every other one in the middle of a change, and now and then another while
the system is starting again. What cannot be done because the system was killed is counted. Anything else that
goes wrong is noted: an error, a query that fails, rows that were published and are not there any more, a
system that ends or hangs by itself.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from threading import Event, Thread
from time import monotonic, sleep

from plait.benchmarks.dropped import standings
from plait.benchmarks.endurance.ledger import Change, Ledger, declared_name
from plait.benchmarks.endurance.system import PATIENCE_S, RunningSystem
from plait.benchmarks.endurance.workload import Declared, Queries
from plait.benchmarks.report import Observer
from plait.errors import PlaitError

CHANGE_EVERY_S = 10.0
# As many queries as are added or dropped at once.
AT_ONCE = (1, 1, 1, 1, 2, 3, 5)
# So many of the oldest are chosen from when some are dropped.
OLDEST = 20
# How often what is done, of all changes or kills.
STRANGE, NAMED_AGAIN, TRIED_BEFORE, LISTED_AFTER, READ_AFTER = 0.08, 0.1, 0.15, 0.3, 0.2
KILLED_IN_A_CHANGE, KILLED_AT_START = 0.5, 0.25
USUAL_CHANGE_S = 0.4  # until some were made
LONGEST_START_S = 12.0

# What is said of a system that was killed.
_GONE = ("not-running", "control")


@dataclass
class Trial:
    """`number` queries are there all the time, some more or less; those that are `staying`, the same."""

    system: RunningSystem
    ledger: Ledger
    queries: Queries
    number: int
    staying: frozenset[str]
    rng: random.Random
    observer: Observer
    counts: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    change_s: list[float] = field(default_factory=list)
    start_s: list[float] = field(default_factory=list)
    _rows_read: dict[str, int] = field(default_factory=dict)
    _started: float = 0.0
    _answers: bool = False

    def start(self) -> None:
        self.system.start()
        self._started, self._answers = monotonic(), False

    def await_answer(self) -> None:
        """Until it can be spoken to, or hangs."""
        while not self._is_there() and monotonic() < self._started + PATIENCE_S and not self.system.has_ended:
            sleep(0.1)

    def go_on(self, end: float, kill_every_s: float, observe: Callable[[], None]) -> None:
        """Until then, by the clock that never goes back."""
        begin = monotonic()
        periods = round((end - begin) / kill_every_s)
        kills = [begin + kill_every_s * (k + self.rng.uniform(-0.1, 0.1)) for k in range(1, periods)]
        change_due = begin
        while (now := monotonic()) < end:
            observe()
            if kills and now >= kills[0]:
                del kills[0]
                if self._kill():
                    kills.insert(0, monotonic() + self.rng.uniform(1.0, LONGEST_START_S))
            elif now >= change_due:
                change_due += CHANGE_EVERY_S * (1 + (now - change_due) // CHANGE_EVERY_S)
                if self._is_there():
                    self._change()
                else:
                    self.counts["changes_while_down"] += 1
            elif self.system.has_ended:
                self._start_again("the system ended by itself")
            elif not self._is_there() and now > self._started + PATIENCE_S:
                self._start_again(f"the system did not answer {PATIENCE_S:g} s after it was started")
            sleep(0.1)

    def _kill(self) -> bool:
        """Whether it shall be killed again while it starts."""
        self.counts["kills"] += 1
        if not self._answers:
            self.counts["kills_while_starting"] += 1
            self.system.kill()
            self.start()
            return False
        if self.rng.random() < KILLED_IN_A_CHANGE:
            self.counts["kills_in_a_change"] += 1
            usual_s = median(self.change_s) if self.change_s else USUAL_CHANGE_S
            self._change(kill_after_s=self.rng.uniform(0.0, 1.5 * usual_s))
        else:
            self.system.kill()
        self.start()
        return self.rng.random() < KILLED_AT_START

    def _start_again(self, why: str) -> None:
        self._note(f"{why}:\n{self.system.last_words()}")
        self.system.kill()
        self.start()

    def _is_there(self) -> bool:
        """Whether it answers. The first answer is held against what should be."""
        if not self._answers:
            with suppress(PlaitError):
                self._list()
                self._answers = True
                self.start_s.append(monotonic() - self._started)
        return self._answers

    def _change(self, kill_after_s: float | None = None) -> None:
        change = self._some_change()
        begins = Event()
        attempt = Thread(target=self._attempt, args=(change, kill_after_s is not None, begins), daemon=True)
        attempt.start()
        if kill_after_s is not None:
            begins.wait(PATIENCE_S)
            sleep(kill_after_s)
            self.system.kill()
        attempt.join(PATIENCE_S)
        if attempt.is_alive():
            self._start_again(f"a change took longer than {PATIENCE_S:g} s")
            attempt.join()

    def _some_change(self) -> Change:
        live = self.ledger.live
        number = self.rng.choice(AT_ONCE)
        if self.rng.random() < 0.5 + (len(live) - self.number) / 20:
            old = [name for name in live if name not in self.staying][:OLDEST]
            return Change(drops=tuple(self.rng.sample(old, min(number, len(old)))))
        return Change(adds=tuple(self._new_query() for _ in range(number)))

    def _new_query(self) -> Declared:
        in_use = {declared_name(name) for name in self.ledger.live}
        free = sorted({declared_name(name) for name in self.ledger.gone_us} - in_use)
        name = self.rng.choice(free) if free and self.rng.random() < NAMED_AGAIN else None
        return self.queries.next(name, strange=self.rng.random() < STRANGE)

    def _attempt(self, change: Change, may_be_killed: bool, begins: Event) -> None:
        """`begins` is set when nothing comes before the change itself any more."""
        is_made = False
        try:
            if not may_be_killed:  # else it would be in the middle of that
                self._try_first(change)
            if change.drops:
                self.ledger.standings |= standings(self.system.attached)
            begins.set()
            self._make(change)
            is_made = True
            self._look()
        except PlaitError as error:
            if error.code in _GONE and not is_made:
                self.ledger.not_answered(change)
            if error.code in _GONE and may_be_killed:
                self.counts["changes_cut_off"] += not is_made
            else:
                self._note(f"{'add' if change.adds else 'drop'}: {error}")
        finally:
            begins.set()

    def _try_first(self, change: Change) -> None:
        if self.rng.random() >= TRIED_BEFORE:
            return
        self.counts["dry_runs"] += 1
        system = self.system.attached
        if change.adds:
            system.would_add_text(change.sql)
        else:
            system.would_drop(*change.drops)

    def _make(self, change: Change) -> None:
        system, began = self.system.attached, monotonic()
        made = system.add_text(change.sql) if change.adds else system.drop(*change.drops)
        self.change_s.append(monotonic() - began)
        self.ledger.made(change, made.added)
        self.counts["changes_made"] += 1
        self.counts["queries_added"] += len(change.adds)
        self.counts["queries_dropped"] += len(change.drops)

    def _look(self) -> None:
        """As users do: at the queries, and at the rows of one."""
        if self.rng.random() < LISTED_AFTER:
            self.counts["lists"] += 1
            self._list()
        if self.rng.random() < READ_AFTER:
            self.counts["results_read"] += 1
            name = self.rng.choice(self.ledger.live)
            rows = len(self.system.attached.results(name))
            if rows < self._rows_read.get(name, 0):
                self._note(f"{name} had {self._rows_read[name]} rows, and has {rows}")
            self._rows_read[name] = rows

    def _list(self) -> None:
        listed = self.system.attached.queries()
        self.ledger.compare({query.name: query.after_us for query in listed})
        for query in listed:
            if query.state == "failed":
                self._note(f"{query.name} has failed")

    def _note(self, error: str) -> None:
        self.errors.append(error)
        self.observer(error)
