"""A system whose queries are changed while it runs, as a process of its own that changes are made to kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from tests.chaos.runs import end_group
from tests.differential.arrivals import Row
from tests.differential.result_rows import outlet_rows
from tests.differential.workloads import RandomWorkload
from tests.java_options import QUICK_ENVIRONMENT
from tests.patience import wait_until

import plait
from plait.benchmarks.dropped import Standing, standings, wrong_until_dropped
from plait.errors import PlaitError
from plait.evaluator import StoredData, difference, evaluate
from plait.failpoints import VARIABLE
from plait.plan.nodes import sources_of
from plait.runtime import outlets

EPOCH = datetime(1970, 1, 1)
PATIENCE_S = 300


@dataclass
class ChangingSystem:
    """A workload of which the first queries are in the file that is run. Files arrive a round at a time."""

    workload: RandomWorkload
    folder: Path
    first: int
    engines: str = "any"
    starts_us: dict[str, int | None] = field(default_factory=dict)
    standings: dict[str, Standing] = field(
        default_factory=dict
    )  # when somebody last asked for the end of one
    refused: list[str] = field(default_factory=list)  # changes that should have been made
    _rounds: int = 0

    def __post_init__(self) -> None:
        begun = replace(self.workload, queries=self.workload.queries[: self.first])
        staged = begun.write(self.folder / "staged")
        self.sql.write_text(staged.read_text())
        for stream in self.workload.streams:
            (self.folder / "data" / stream.relation.name).mkdir(parents=True)
        for table in self.workload.tables:
            source = self.folder / "staged" / "data" / table.relation.name
            source.rename(self.folder / "data" / table.relation.name)

    @property
    def sql(self) -> Path:
        return self.folder / "workload.sql"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def system(self) -> plait.System:
        return plait.attach(self.state)

    @contextmanager
    def running(
        self, failpoint: str | None = None, *, is_killed: bool = False, merges: bool = False
    ) -> Iterator[Callable[[], None]]:
        """Until it is stopped at the end, has killed itself, or was killed: by what this gives. If it
        `merges` at the start, that may be where it kills itself."""
        environment = {key: value for key, value in os.environ.items() if key != VARIABLE} | QUICK_ENVIRONMENT
        if failpoint is not None:
            environment[VARIABLE] = failpoint
        log = self.folder / "run.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                self._command("--trigger", "200ms", "--merge" if merges else "--no-merge"),
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                wait_until(lambda: process.poll() is not None or self._answers())
                assert process.poll() is None, log.read_text()
                yield lambda: os.killpg(process.pid, signal.SIGKILL)
                if failpoint is None and not is_killed:
                    self.system.stop()
                    assert process.wait(PATIENCE_S) == 0, log.read_text()
                else:
                    with suppress(ProcessLookupError):  # it may not have got to its failpoint
                        os.killpg(process.pid, signal.SIGKILL)
                    assert process.wait(PATIENCE_S) == -signal.SIGKILL, log.read_text()
            finally:
                end_group(process.pid)
                process.wait(PATIENCE_S)

    def killed_at_start(self, failpoint: str, for_seconds: int = 1) -> bool:
        """Start it, to be killed while it starts, or soon after, if it gets to that place; whether it did."""
        process = subprocess.Popen(
            self._command("--for", f"{for_seconds}s"),
            env=os.environ | QUICK_ENVIRONMENT | {VARIABLE: failpoint},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = process.wait(PATIENCE_S)
            assert code in (0, -signal.SIGKILL)
            return code != 0
        finally:
            end_group(process.pid)

    def arrive(self) -> None:
        """The next file of each stream, and wait until it is read."""
        self.put()
        loaded = self.workload.load()
        live = [query.name.split("#")[0] for query in self.system.queries()]
        read = {name.lower() for query in live for name in sources_of(loaded.query(query).plan)[0]}
        expected = {
            stream.relation.name: sum(map(len, stream.cuts[: self._rounds]))
            for stream in self.workload.streams
            if stream.relation.name.lower() in read
        }
        wait_until(lambda: self._is_read(expected))

    def put(self) -> None:
        """The next file of each stream."""
        for stream in self.workload.streams:
            name = stream.relation.name
            for file in (self.folder / "staged" / "data" / name).glob(f"{self._rounds:03}.*"):
                file.rename(self.folder / "data" / name / file.name)
        self._rounds += 1

    def add(self, names: Sequence[str]) -> None:
        self.system.add_text("\n".join(q.sql for q in self.workload.queries if q.name in names))

    def drop(self, *names: str) -> None:
        self.standings |= standings(self.system)
        self.system.drop(*names, sure=True)

    def note_starts(self) -> set[str]:
        """Which queries there are; since when is noted."""
        queries = self.system.queries()
        self.starts_us |= {query.name: query.after_us for query in queries}
        return {query.name for query in queries}

    def drain(self) -> None:
        subprocess.run(
            self._command("--available-now", "--drain"),
            env=os.environ | QUICK_ENVIRONMENT,
            check=True,
            timeout=PATIENCE_S,
            capture_output=True,
        )

    def wrong(self, queries: Sequence[str], *, dropped: bool = False) -> list[str]:
        """What is wrong with the rows of queries; if they were `dropped`, up to then."""
        loaded = self.workload.load()
        found = []
        with StoredData.from_rows(loaded.catalog, self.workload.rows) as data:
            for name in queries:
                after_us = self.starts_us[name]
                start = None if after_us is None else EPOCH + timedelta(microseconds=after_us)
                query = loaded.query(name.split("#")[0])
                expected, given = evaluate(query, data, start=start), self._rows(name)
                if dropped:
                    standing = self.standings[name.lower()]
                    text = wrong_until_dropped(query, expected, given, standing, loaded.queries.values())
                else:
                    text = difference(expected.rows, given)
                if text:
                    found.append(f"{name}, after {after_us}:\n{text}")
        return found

    def _rows(self, name: str) -> list[Row]:
        return outlet_rows(outlets.recorded(self.state)[name.lower()])

    def _is_read(self, expected: Mapping[str, int]) -> bool:
        """Whether so many rows of streams were read, bad records among them."""
        read = {each.name: each.rows + each.bad_records for each in self.system.statistics().streams}
        return all(read[name] == rows for name, rows in expected.items())

    def _answers(self) -> bool:
        with suppress(PlaitError):
            self.system.queries()
            return True
        return False

    def _command(self, *options: str) -> list[str]:
        return [
            *(sys.executable, "-m", "plait", "run", str(self.sql), *options, "--engines", self.engines),
            *("--state", str(self.state), "--results", str(self.folder / "results")),
        ]
