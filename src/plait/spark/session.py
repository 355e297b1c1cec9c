"""The Spark that queries run on: one of our own, or a session inside the Spark that the user has.

Either way it has the settings that the meaning of a query rests on, such as ANSI mode and times in UTC, and
those that make micro-batches cheap. A Spark of our own says nothing unless asked, and on a local master
listens on the loopback address only.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen
from threading import Lock
from typing import Any

from pyspark import SparkContext, java_gateway
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from plait.errors import ExternalError, UnsupportedError, UserError
from plait.machine import memory_shares
from plait.spark.failures import SPARK_ERRORS, explained, is_gone
from plait.spark.java import java_home

DEFAULT_MASTER = "local[*]"
_MASTERS = ("local", "spark://", "k8s://")

# What rows depend on.
_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
}

# What makes micro-batches cheap. Renaming is atomic where checkpoints are: in a folder of this machine.
_CHEAP_BATCHES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.adaptive.enabled": "false",
    # Rows are handed over in few large pieces.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.streaming.minBatchesToRetain": "5",
    # The names of all files read so far are written anew so many batches apart.
    "spark.sql.streaming.fileSource.log.compactInterval": "100",
    # What was written before is for readers elsewhere, of which there are none.
    "spark.sql.streaming.fileSource.log.cleanupDelay": "1m",
}
_MOST_PARTITIONS = 8

# What a Spark of our own is started with beside that. The numbers bound what it remembers of past batches.
_OWN = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.sql.ui.retainedExecutions": "20",
    # Many queries, each with its classes, which would else be compiled anew in every batch.
    "spark.sql.codegen.cache.maxEntries": "2000",
}
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# What a start changes for its time is the whole process's, so it is one at a time.
_STARTING = Lock()
_QUIET = Path(__file__).with_name("quiet_log4j2.properties")


def session(
    master: str | None = None, *, log: bool = False, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark of our own on a master, this machine unless given; `log` lets it write its logs to stderr.

    Further settings of Spark's may be given; those that the meaning of queries rests on are ours.
    """
    given = dict(settings or {})
    if os.environ.get("SPARK_REMOTE") or "spark.remote" in given:
        raise _no_spark_connect("SPARK_REMOTE names a Spark Connect server")
    master = master or given.pop("spark.master", DEFAULT_MASTER)
    _check_master(master)
    heap_mb = memory_shares().java_heap_bytes // 1024**2
    wanted = {
        **_OWN,
        "spark.driver.memory": f"{heap_mb}m",
        **(_LOOPBACK if master.startswith("local") else {}),
        **_CHEAP_BATCHES,
        **given,
        **_MEANING,
    }
    if not log:
        options = f"-Dlog4j2.configurationFile={_QUIET.as_uri()} {wanted.get(_JAVA_OPTIONS, '')}"
        wanted[_JAVA_OPTIONS] = options.strip()
        _silence_pyspark()
    with _STARTING, _environment_of_spark(), _java_of_our_own():
        try:
            builder = SparkSession.builder.master(master).appName("plait")
            started = builder.config(map={**wanted}).getOrCreate()
        except PySparkRuntimeError as error:
            raise ExternalError(
                "spark",
                "Spark could not be started",
                detail=str(error),
                hint="what Java says is above" if log else "its logs say more: --log",
            ) from error
        except SPARK_ERRORS as error:
            if is_gone(error):
                raise ExternalError(
                    "spark-master",
                    f"Spark on the master `{master}` cannot be reached, or ended while it started",
                    hint="does it run at that host and port? its logs say more: --log",
                ) from error
            raise explained(error, f"Spark on the master `{master}`") from error
    return started


def present() -> SparkSession | None:
    """The Spark that this process has already, if it has one."""
    if SparkContext._active_spark_context is None:
        return None
    # Spark knows an active session for each thread; another thread may have made it.
    return SparkSession.getActiveSession() or SparkSession._instantiatedSession


def adopted(users: SparkSession) -> SparkSession:
    """A session of our own in the Spark that the user has. Their session keeps its settings."""
    if not isinstance(users, SparkSession) or not hasattr(users, "_jsparkSession"):
        raise _no_spark_connect("the session given is one of Spark Connect")
    ours = users.newSession()
    for key, value in {**_CHEAP_BATCHES, **_MEANING}.items():
        ours.conf.set(key, value)
    _silence_pyspark()
    return ours


def check_file_system(session: SparkSession) -> None:
    """Refuse a Spark that takes plain paths for those of another file system: ours are of this machine."""
    context = session.sparkContext._jsc
    assert context is not None
    default = context.hadoopConfiguration().get("fs.defaultFS")
    if not default.startswith("file:"):
        raise UnsupportedError(
            "spark-files",
            f"Spark's default file system is {default}, and Plait keeps its state in folders of machines",
            hint="set fs.defaultFS to file:/// for this session, with folders that all its machines share",
        )


def stop(session: SparkSession) -> None:
    """Stop a Spark of our own, which may be gone already."""
    with warnings.catch_warnings(), suppress(*SPARK_ERRORS):
        warnings.simplefilter("ignore", RuntimeWarning)
        session.stop()


def started_queries(session: SparkSession) -> frozenset[str]:
    """The starts of streaming queries that go on in a Spark, whichever session they are of: one that is
    started again has another."""
    active = session._jsparkSession.sharedState().activeStreamingQueries()
    return frozenset(str(execution.runId().toString()) for execution in active.values())


def divide_among(session: SparkSession, queries: int) -> None:
    """Let each of so many queries cut its state into its share of the cores: each part costs files and tasks
    in every batch. A query that has a checkpoint keeps the number of parts that it began with."""
    partitions = min(session.sparkContext.defaultParallelism, _MOST_PARTITIONS) // queries
    session.conf.set("spark.sql.shuffle.partitions", str(max(1, partitions)))


def _check_master(master: str) -> None:
    """Spark's launcher ends at a master that it does not know, and tells only its own log why."""
    if master != "yarn" and not master.startswith(_MASTERS):
        raise UserError(
            "spark-master",
            f"`{master}` is no master of Spark's",
            hint="for example local[4], spark://host:7077, k8s://https://host:443 or yarn",
        )


def _no_spark_connect(reason: str) -> UnsupportedError:
    return UnsupportedError(
        "spark-connect",
        f"Plait does not run on Spark Connect, and {reason}",
        detail="a micro-batch is handed over in the driver's process, where Spark Connect has none",
        hint="unset SPARK_REMOTE and name a master, such as --master spark://host:7077; "
        "without one Spark runs on this machine",
    )


def _silence_pyspark() -> None:
    """What fails comes to us as an error, which is ours to report; PySpark would also log it."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # With tracebacks: of errors in a batch by a logger of its own, of calls that are broken off, by Ctrl-C or
    # the end of Spark's process, by the root logger.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_of_no_call)


def _is_of_no_call(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


@contextmanager
def _environment_of_spark() -> Iterator[None]:
    """The variables that Spark takes over when it starts: which Java, and which Python.

    Python on Spark's side is this one, where Plait is installed, and not the first `python3` to be found.
    """
    variables = {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
    }
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _java_of_our_own() -> Iterator[None]:
    """Let the Java that PySpark starts meanwhile end with this process, and not before.

    A signal to both, as `timeout` and systemd send it, is for this process to heed: a batch that runs needs
    Java until it is done. Java ends when its standard input does. If Ctrl-C breaks off the start, PySpark
    would leave it behind: it cannot write its port to a folder that is gone, and stays. PySpark gives the
    process away only when it is up, so it is taken where it is made.
    """
    started: list[Popen[bytes]] = []

    def remembered(*arguments: Any, **options: Any) -> Popen[bytes]:
        started.append(Popen(*arguments, **{**options, "preexec_fn": _ignore_signals}))
        return started[-1]

    java_gateway.Popen = remembered  # type: ignore[attr-defined, assignment]
    try:
        yield
    except KeyboardInterrupt:
        for process in started:
            process.kill()
            process.wait()
        if started:
            SparkContext._gateway = SparkContext._jvm = None
        raise
    finally:
        java_gateway.Popen = Popen  # type: ignore[attr-defined]


def _ignore_signals() -> None:
    """Java keeps to what it is started with, and so do the commands that it runs."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
