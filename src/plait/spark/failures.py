"""What Spark reports, said so that somebody can act on it.

A batch that fails stays planned: Spark reads the same files again at the next start. So the way out of a file
that cannot be read is to put another in its place, not to take it away; an empty one leaves its rows out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from errno import EMFILE, ENOSPC

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import convert_exception
from pyspark.sql import SparkSession

from plait.engines.duckdb import NO_SPACE
from plait.errors import ExternalError, InfeasibleError, InternalError, PlaitError, UserError
from plait.spark.file_paths import path_of_url

# What calls of PySpark may raise. A process that is gone refuses the connection.
SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)

_FILE = re.compile(r"reading file (\S+?)\.?(?:\s|$)")
_TYPE = re.compile(r"Parquet column \[(.*?)\]\. Expected Spark type (.+?), actual Parquet type (\w+)")
_HEADER = re.compile(r"CSV header does not conform to the schema\.\s*Header: (.*)\s*Schema: (.*)")
_NO_FORMAT = re.compile(r"Failed to find the data source: ([\w.-]*\w)")
_TOPIC = re.compile(r"KafkaV2\[\w+\[(.+?)\]\]")
_MASTER = re.compile(r"Could not parse Master URL")
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\] ")
_JAVA_CLASS = re.compile(r"^(?:[a-z]\w*\.)+[A-Z][\w$]*(?:: )?")
_STATE = re.compile(r"\s*SQLSTATE: \w+")

_ENDED = "spark-ended"
_OF_ENGINES = ("duckdb", NO_SPACE, _ENDED)
_SHUT_DOWN = ("SparkContext was shut down", "stopped SparkContext")

# A topic that was deleted, and one that does not go on where it was.
_TOPIC_GONE = (
    "does not host this topic-partition",
    "some data may have been missed",
    "data may have been lost",
)
_WORKER_GONE = ("Python worker exited unexpectedly", "pyspark.daemon", "python_streaming_source")

_MOST_LINES = 6
_LONGEST_LINE = 300

# The batch that reads the file is planned, and will read what has its name.
REPLACE = "put a readable file in its place (an empty one, to do without its rows) and start again"


def explained(error: Exception, what: str) -> PlaitError:
    """The error that Spark gave, as one of ours. `what` has failed, such as "query `totals`"."""
    if isinstance(error, InfeasibleError) or (isinstance(error, ExternalError) and error.code in _OF_ENGINES):
        # Only who called the engine knows for whom.
        return type(error)(
            error.code, f"{what} stopped: {error.message}", detail=error.detail, hint=error.hint
        )
    if isinstance(error, PlaitError):
        return error
    if is_gone(error):
        return ExternalError(
            "spark-gone",
            f"{what} stopped: Spark's process has ended",
            hint="start again, and it goes on without gap or duplicate; "
            "if nobody ended it, there may be too little memory",
        )
    messages = [_plain(message) for message in _messages(error)]
    text = "\n".join(messages)
    reason = reason_of(error)
    if "FileNotFoundException" in text or "FILE_NOT_EXIST" in "\n".join(_messages(error)):
        return data_gone(what, _named(text))
    if found := _TYPE.search(text):
        column, declared, stored = found.groups()
        return UserError(
            "stored-type",
            f"{what} reads the column `{column}` as {declared.upper()}, but it is stored as {stored}",
            detail=_in_file(text),
            hint=f"{REPLACE}; or declare the stored type, CAST in the queries and begin anew",
        )
    if found := _HEADER.search(text):
        return UserError(
            "stored-columns",
            f"{what} reads a CSV file whose first line is not that of the others",
            detail=f"{_in_file(text)}: {found[1].strip()}\nin the others: {found[2].strip()}",
            hint=REPLACE,
        )
    if found := _NO_FORMAT.search(text):
        return UserError(
            "no-such-source",
            f"{what} reads the format `{found[1]}`, which this Spark does not have",
            hint="give it the jars: PYSPARK_SUBMIT_ARGS='--packages GROUP:NAME:VERSION pyspark-shell'",
        )
    if _MASTER.search(text):
        return UserError("spark-master", f"{what}: there is no such master", hint="for example local[4]")
    if any(words in text for words in _TOPIC_GONE):
        found = _TOPIC.search("\n".join(_messages(error)))
        return ExternalError(
            "topic-gone",
            f"{what} stopped: Kafka no longer has {f'`{found[1]}`' if found else 'its topic'} as it was read",
            detail=reason,
            hint="bring the topic back as it was; of one that was made anew, start anew, "
            "with other --state and --results folders",
        )
    if any(words in text for words in _WORKER_GONE):
        return ExternalError(
            "worker-gone",
            f"{what} stopped: a process of Python's that Spark had started has ended",
            hint="start again, and it goes on without gap or duplicate; "
            "if nobody ended it, there may be too little memory",
        )
    if os.strerror(ENOSPC) in text:
        return ExternalError(
            NO_SPACE, f"{what} stopped: the disk is full", detail=reason, hint="make room and start again"
        )
    if os.strerror(EMFILE) in text:
        return ExternalError(
            "open-files",
            f"{what} stopped: too many files are open",
            detail=reason,
            hint="allow more with `ulimit -n` and start again: no row is lost or doubled",
        )
    if "Java heap space" in text or "OutOfMemoryError" in text:
        return ExternalError(
            "memory",
            f"{what} stopped: Spark has too little memory",
            detail=reason,
            hint="give it more: PYSPARK_SUBMIT_ARGS='--driver-memory 8g pyspark-shell'",
        )
    if _FILE.search(text):
        return UserError(
            "unreadable-data",
            f"{what} reads a file that cannot be read{_named(text)}",
            detail=reason,
            hint=REPLACE,
        )
    if isinstance(error, (OSError, *SPARK_ERRORS)):
        return ExternalError(
            "spark", f"{what} failed in Spark", detail=reason, hint="its logs say more: --log"
        )
    return InternalError("batch", f"{what} failed", detail=f"{type(error).__name__}: {reason}")


def data_gone(what: str, named: str) -> UserError:
    return UserError(
        "data-gone",
        f"{what} needs a file that is not there any more{named}",
        hint="bring it back (an empty file of that name, to do without its rows) and start again",
    )


def ended_without_reason() -> ExternalError:
    return ExternalError(_ENDED, "Spark has ended it, and does not say why", hint="its logs may: --log")


def is_gone(error: BaseException) -> bool:
    """Whether Spark's process has ended, or is about to: nothing can be asked of it any more."""
    if isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError):
        return True  # an answer that did not come
    return isinstance(error, ConnectionError) or any(words in str(error) for words in _SHUT_DOWN)


def has_ended(session: SparkSession) -> bool:
    """Whether Spark has stopped, or has begun to: from then on, its errors may say anything."""
    try:
        context = session.sparkContext._jsc
        return context is None or bool(context.sc().isStopped())
    except SPARK_ERRORS:
        return True


def reason_of(error: BaseException) -> str:
    """What is behind an error of Spark's, in a few lines."""
    *_, innermost = _messages(error)
    return _clipped(_plain(innermost))


def _messages(error: BaseException) -> Iterator[str]:
    """What the error says, then what caused it says, and so on."""
    cause: BaseException | None = error
    if isinstance(error, Py4JJavaError):
        cause = convert_exception(error.java_exception)
    while cause is not None:
        yield str(getattr(cause, "_desc", None) or cause)
        cause = getattr(cause, "_cause", None) or cause.__cause__


def _plain(message: str) -> str:
    """Without what only Spark's developers look at."""
    message = message.partition("=== Streaming Query ===")[0]
    return _STATE.sub("", _CONDITION.sub("", _JAVA_CLASS.sub("", message))).strip()


def _named(text: str) -> str:
    found = _FILE.search(text)
    return f": {path_of_url(found[1])}" if found else ""


def _in_file(text: str) -> str:
    return f"in{_named(text)[1:]}"


def _clipped(reason: str) -> str:
    lines = [line.strip() for line in reason.splitlines() if line.strip()][:_MOST_LINES]
    return "\n".join(
        line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…" for line in lines
    )
