"""Spark, too, holds a lock on the state folder it works in.

Spark's JVM is a process of its own, which outlives a Plait that is killed, for a moment or, if it belongs to
somebody else, for long. While it lives it may write to its checkpoints, so the next run waits for this lock.
The system releases it with the JVM.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from pyspark.sql import SparkSession

from plait.errors import UserError
from plait.spark.failures import SPARK_ERRORS

_PATIENCE_SECONDS = 60.0


class SparkFolderLock:
    """Held by Spark's process from the moment it is made until `close`."""

    def __init__(
        self, session: SparkSession, path: Path, patience_seconds: float = _PATIENCE_SECONDS
    ) -> None:
        jvm = session._jvm
        assert jvm is not None
        self._file = jvm.java.io.RandomAccessFile(str(path), "rw")
        deadline = monotonic() + patience_seconds
        while self._file.getChannel().tryLock() is None:
            if monotonic() > deadline:
                self._file.close()
                raise UserError(
                    "state-in-use",
                    f"the Spark of a run that has ended still works in the state folder {path.parent}",
                    hint="end that process, and start again",
                )
            sleep(0.1)

    def close(self) -> None:
        with suppress(*SPARK_ERRORS):  # a Spark that is gone holds nothing
            self._file.close()
