"""`plait run` as a process of its own, with Java below it, that is killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import plait
from plait.api.system import System
from plait.errors import ExternalError

TRIGGER = "1s"
COMPACT = "1min"
PATIENCE_S = 300.0  # what has not ended by then hangs
SHOWN_LINES, SHOWN_SIGNS = 10, 300


class RunningSystem:
    """All lives go on with the same state and results, by the same command."""

    def __init__(self, sql: Path, folder: Path) -> None:
        self.state = folder / "state"
        self.results = folder / "results"
        self.lives = 0
        self._sql = sql
        self._logs = folder / "logs"
        self._logs.mkdir()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def attached(self) -> System:
        return plait.attach(self.state)

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def start(self) -> None:
        """It answers some ten seconds later."""
        self.lives += 1
        self._process = self._begun("--trigger", TRIGGER)

    def kill(self) -> None:
        """Python and Java at once; nothing can be put away."""
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._process = None

    def stop(self) -> None:
        self.attached.stop()
        self._await_end("stop")

    def drain(self) -> None:
        """Process all that is there, and close everything."""
        self.lives += 1
        self._process = self._begun("--available-now", "--drain")
        self._await_end("drain")

    def last_words(self) -> str:
        """The end of what the last life has printed, of which lines of progress may be long."""
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(line[:SHOWN_SIGNS] for line in lines[-SHOWN_LINES:])

    @property
    def _log(self) -> Path:
        return self._logs / f"{self.lives:03d}.log"

    def _begun(self, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "plait", "run", str(self._sql), *options, "--compact", COMPACT]
        folders = ["--state", str(self.state), "--results", str(self.results)]
        with self._log.open("wb") as log:
            # A session of its own is a group of processes, which is killed as one.
            return subprocess.Popen([*command, *folders], stdout=log, stderr=log, start_new_session=True)

    def _await_end(self, what: str) -> None:
        assert self._process is not None
        try:
            code = self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ExternalError(
                "endurance", f"a {what} took longer than {PATIENCE_S:g} s", detail=self.last_words()
            ) from None
        self._process = None
        if code:
            raise ExternalError(
                "endurance", f"a {what} ended with exit code {code}", detail=self.last_words()
            )
