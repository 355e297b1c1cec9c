"""Runs of `plait run` as processes of their own, killed when a test wants it, and what they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.kills import AtFailpoint, AtMoment, Kill
from tests.differential.arrivals import Row
from tests.differential.result_rows import outlet_rows
from tests.java_options import QUICK_ENVIRONMENT

from plait.failpoints import VARIABLE
from plait.runtime import outlets

DRAINED = "error[state-drained]"  # a start after everything was done
STOPPING = "stopping when the batches that run are done"  # what a run says that is asked to
INTERRUPTED = 130  # the exit code of a start that is broken off
PATIENCE_S = 600  # a run that has not ended by then hangs


@dataclass(frozen=True)
class Ended:
    """How a run ended: killed, or by itself with an exit code."""

    killed: bool
    code: int
    output: str

    @property
    def stopped(self) -> bool:
        """Whether it was asked to stop, and did, before it was killed."""
        return not self.killed and (self.code == INTERRUPTED or STOPPING in self.output)

    @property
    def well(self) -> bool:
        """With all rows in the results, also if a kill came between the last of them and the end."""
        return self.code == 0 or DRAINED in self.output


@dataclass
class System:
    """A workload's SQL file, with a state folder and a results folder that every start goes on with."""

    sql: Path
    folder: Path
    planner: str
    engines: str
    starts: int = field(default=0, init=False)
    _groups: list[int] = field(default_factory=list, init=False)  # left behind by failpoints

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def run(self, kill: Kill | None = None) -> Ended:
        """Start, maybe kill, and wait for the end of everything that was started."""
        self.starts += 1
        environment = {key: value for key, value in os.environ.items() if key != VARIABLE} | QUICK_ENVIRONMENT
        if isinstance(kill, AtFailpoint):
            environment[VARIABLE] = f"{kill.name}:{kill.number}"
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.folder / f"start-{self.starts:02}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command(), env=environment, stdout=output, stderr=output, start_new_session=True
            )
            try:
                killed = isinstance(kill, AtMoment) and _kill_at(process, kill)
                code = process.wait(PATIENCE_S)
            finally:
                if isinstance(kill, AtFailpoint) and kill.leaves_jvm:
                    self._groups.append(process.pid)
                else:
                    end_group(process.pid)
                process.wait(PATIENCE_S)
        return Ended(killed or code == -signal.SIGKILL, code, log.read_text(errors="replace"))

    def _command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "plait", "run", str(self.sql), "--available-now", "--drain"),
            *("--planner", self.planner, "--engines", self.engines),
            *("--state", str(self.folder / "state"), "--results", str(self.results)),
        ]

    def close(self) -> None:
        for group in self._groups:
            end_group(group)

    def rows(self, query: str) -> list[Row]:
        """What any reader of the files sees now."""
        state = self.folder / "state"
        if not (state / outlets.FILE).exists():
            return []  # it was killed before it could write any
        return outlet_rows(outlets.find(state, query))


def _kill_at(process: subprocess.Popen[bytes], kill: AtMoment) -> bool:
    """Whether the process was still there to be killed."""
    try:
        process.wait(kill.seconds)
    except subprocess.TimeoutExpired:
        pass
    else:
        return False
    if kill.while_stopping:
        process.send_signal(signal.SIGINT)
        time.sleep(kill.seconds % 0.3)
    was_running = process.poll() is None
    end_group(process.pid)
    return was_running


def end_group(group: int) -> None:
    """Kill what is left of a process group that `run` started."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def part_of(rows: Sequence[Row], whole: Sequence[Row]) -> bool:
    """Whether all rows are among those of the whole, each no more often; doubles are not compared."""
    return not Counter(map(_without_doubles, rows)) - Counter(map(_without_doubles, whole))


def _without_doubles(row: Row) -> Row:
    return tuple("double" if isinstance(value, float) else value for value in row)
