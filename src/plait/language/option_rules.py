"""Which options `WITH (key = value, …)` can hold, and how their values read.

Decides the keys of each kind of statement and the unit in which a value arrives:

| unit | options |
|---|---|
| rows per second | rate |
| bytes | row_bytes, memory |
| bytes per second | bandwidth, in_bandwidth, out_bandwidth |
| microseconds | idle_timeout, max_future, latency, compact |

One option may choose which others there are: the connector of a stream or table, the sink of a query.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath, PureWindowsPath

from plait.catalog import OptionValue, SinkKind
from plait.errors import closest
from plait.language.limits import clip
from plait.language.quantities import (
    QuantityError,
    parse_bandwidth,
    parse_bytes,
    parse_count,
    parse_duration,
    parse_limits,
    parse_number,
    parse_rate,
)

MAX_CORES = 10**6
MAX_PATH_LENGTH = 1000
MAX_NAME_LENGTH = 128
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")

STREAM_CONNECTORS = ("files", "spark", "generator")
TABLE_CONNECTORS = ("files", "duckdb")
# What people take for connectors and sinks.
_SPARK_FORMATS = frozenset({"kafka", "delta", "iceberg", "hudi", "rate", "rate-micro-batch", "socket"})
_SPARK_FORMAT = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,199}")
_GENERATOR = re.compile(r"[a-z][a-z0-9_]{0,63}[.][a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True)
class OptionRule:
    """`key` may end in `<…>`, which stands for a name.

    `of` are the connectors or sinks that have the option: all of them if it is empty.
    """

    key: str
    read: Callable[[str], OptionValue]
    documentation: str
    example: str
    may_be_secret: bool = False
    of: tuple[str, ...] = ()
    is_needed: bool = False


@dataclass(frozen=True)
class OptionRules:
    """All options of a kind of statement.

    `chooser` is the key of the option that chooses which others there are, `default` its value where it is
    not given.
    """

    rules: tuple[OptionRule, ...]
    chooser: str = ""
    default: str = ""


def _choice(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        folded = text.strip().lower()
        if folded not in choices:
            there_is = ", ".join(f"'{choice}'" for choice in choices)
            hint = closest(folded, choices) if len(choices) > 1 else ""
            raise QuantityError(f"`{clip(text)}` is not one of {there_is}", hint or f"use {there_is}")
        return folded

    return read


def _read_name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise QuantityError(f"`{clip(text)}` is not a name", "for example 'atlanta'")
    return text


def _read_boolean(text: str) -> bool:
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise QuantityError(f"`{clip(text)}` is neither true nor false", "use true or false")
    return folded == "true"


def _read_character(text: str) -> str:
    if len(text) != 1 or not (text.isprintable() or text == "\t") or text in "\"'":
        raise QuantityError(
            f"`{clip(text)}` is not one character that can separate values", "for example ','"
        )
    return text


def _read_start(text: str) -> str:
    """'earliest', 'latest', or a time."""
    folded = text.strip().lower()
    if folded in ("earliest", "latest"):
        return folded
    return _read_time(text, "use 'earliest', 'latest' or '2026-01-31 12:00:00'")


def _read_time(text: str, hint: str = "for example '2026-01-31 12:00:00'") -> str:
    """A time in UTC as `YYYY-MM-DD HH:MM:SS[.ffffff]`."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise QuantityError(f"`{clip(text)}` is no position in a stream", hint) from None
    if moment.tzinfo is not None:
        raise QuantityError("a position in a stream is in UTC and has no zone", hint)
    if moment.year < 1970:
        raise QuantityError("event time begins in 1970", hint)
    return moment.isoformat(sep=" ")


def _choice_beside_spark(key: str, *choices: str) -> Callable[[str], str]:
    """A choice of which 'spark' is one, for formats that people take for others."""

    def read(text: str) -> str:
        folded = text.strip().lower()
        if folded in _SPARK_FORMATS:
            raise QuantityError(
                f"`{folded}` is a format of Spark's", f"use {key} = 'spark', format = '{folded}'"
            )
        return _choice(*choices)(text)

    return read


def _read_spark_format(text: str) -> str:
    """The name of a data source of Spark's: a word, or the name of a class."""
    if not _SPARK_FORMAT.fullmatch(text.strip()):
        raise QuantityError(f"`{clip(text)}` is not the name of a format", "for example 'kafka'")
    return text.strip()


def _read_generator(text: str) -> str:
    folded = text.strip().lower()
    if not _GENERATOR.fullmatch(folded):
        raise QuantityError(f"`{clip(text)}` is not the name of a generator", "for example 'airline.flights'")
    return folded


def _read_stored_name(text: str) -> str:
    if not text.strip() or len(text) > MAX_NAME_LENGTH or not text.isprintable():
        raise QuantityError(f"`{clip(text)}` is not the name of a table", "for example 'rooms'")
    return text


def _read_text(text: str) -> str:
    return text


def check_path(text: str) -> str:
    """A path that stays below its folder, or an absolute one."""
    if not text.strip():
        raise QuantityError("the path is empty", "for example 'data/flights'")
    if len(text) > MAX_PATH_LENGTH:
        raise QuantityError(f"the path is longer than {MAX_PATH_LENGTH} characters", "use a shorter one")
    if not text.isprintable():
        raise QuantityError("the path has characters that do not print", "for example 'data/flights'")
    if ".." in PurePath(text).parts or ".." in PureWindowsPath(text).parts:
        raise QuantityError("a relative path does not leave its folder by `..`", "write the absolute path")
    return text


def _memory(text: str) -> int:
    return parse_bytes(text, needs_unit=True)


def _duration(text: str) -> int:
    return parse_duration(text)


def _positive_duration(text: str) -> int:
    return parse_duration(text, positive=True)


def _read_limits(text: str) -> str:
    parse_limits(text)
    return text


_FILES = (
    OptionRule(
        "path",
        check_path,
        "folder or file, relative to the SQL file",
        "'data/flights'",
        may_be_secret=True,
        of=("files",),
        is_needed=True,
    ),
    OptionRule(
        "format",
        _choice("parquet", "csv", "json"),
        "how files are written",
        "'parquet'",
        of=("files",),
        is_needed=True,
    ),
    OptionRule("header", _read_boolean, "CSV files begin with the columns' names", "true", of=("files",)),
    OptionRule("delimiter", _read_character, "what separates values in CSV files", "','", of=("files",)),
)
_SPARK = (
    OptionRule(
        "format", _read_spark_format, "the format as Spark calls it", "'kafka'", of=("spark",), is_needed=True
    ),
    OptionRule(
        "option.<name>",
        _read_text,
        "an option of that format",
        "'earliest'",
        may_be_secret=True,
        of=("spark",),
    ),
)
_PLANNING = (
    OptionRule("site", _read_name, "where the data enters", "'atlanta'"),
    OptionRule("row_bytes", parse_bytes, "mean size of a row", "120"),
    OptionRule("distinct.<column>", parse_count, "number of different values of a column", "300"),
)
STREAM_OPTIONS = OptionRules(
    (
        OptionRule(
            "connector", _choice_beside_spark("connector", *STREAM_CONNECTORS), "where the data is", "'files'"
        ),
        *_FILES,
        OptionRule(
            "files_per_batch", parse_count, "how many new files a micro-batch takes", "10", of=("files",)
        ),
        *_SPARK,
        OptionRule(
            "path",
            check_path,
            "what that format reads, relative to the SQL file",
            "'data/flights'",
            may_be_secret=True,
            of=("spark",),
        ),
        OptionRule(
            "value_format", _choice("json"), "what the source's column `value` holds", "'json'", of=("spark",)
        ),
        OptionRule(
            "generator",
            _read_generator,
            "which rows are made",
            "'airline.flights'",
            of=("generator",),
            is_needed=True,
        ),
        OptionRule(
            "seed", lambda text: parse_count(text, least=0), "other rows for each", "7", of=("generator",)
        ),
        OptionRule(
            "end", _read_time, "the time before which rows end", "'2026-01-31 13:00:00'", of=("generator",)
        ),
        *_PLANNING,
        OptionRule("rate", parse_rate, "rows a second", "5"),
        OptionRule("start", _read_start, "where reading begins", "'earliest'"),
        OptionRule(
            "idle_timeout",
            _positive_duration,
            "when a silent stream stops holding others back",
            "'5 minutes'",
        ),
        OptionRule("max_future", _positive_duration, "how far ahead an event time may be", "'1 hour'"),
    ),
    chooser="connector",
)
TABLE_OPTIONS = OptionRules(
    (
        OptionRule("connector", _choice(*TABLE_CONNECTORS), "where the data is", "'files'"),
        *_FILES,
        OptionRule(
            "path",
            check_path,
            "the database's file, relative to the SQL file",
            "'data/rooms.duckdb'",
            may_be_secret=True,
            of=("duckdb",),
            is_needed=True,
        ),
        OptionRule("table", _read_stored_name, "the table's name in the database", "'rooms'", of=("duckdb",)),
        *_PLANNING,
        OptionRule("rows", lambda text: parse_count(text, least=0), "number of rows", "300"),
    ),
    chooser="connector",
)
QUERY_OPTIONS = OptionRules(
    (
        OptionRule("sink", _choice_beside_spark("sink", *SinkKind), "where the results go", "'json'"),
        *_SPARK,
        OptionRule(
            "path", check_path, "what that format writes, relative to the SQL file", "'out/q'", of=("spark",)
        ),
        OptionRule(
            "retain",
            _read_limits,
            "how long rows are kept, or how much of them",
            "'7 days'",
            of=(SinkKind.PARQUET, SinkKind.JSON),
        ),
        OptionRule(
            "compact",
            _positive_duration,
            "how old small files are when they are merged",
            "'10 minutes'",
            of=(SinkKind.PARQUET, SinkKind.JSON),
        ),
    ),
    chooser="sink",
    default=SinkKind.PARQUET,
)
SITE_OPTIONS = OptionRules(
    (
        OptionRule("cores", lambda text: parse_number(text, most=MAX_CORES), "cores for operators", "4"),
        OptionRule("memory", _memory, "memory for operators", "'16 GB'"),
        OptionRule("bandwidth", parse_bandwidth, "of the network card, in each direction", "'1 Gbps'"),
        OptionRule("in_bandwidth", parse_bandwidth, "of what comes in", "'1 Gbps'"),
        OptionRule("out_bandwidth", parse_bandwidth, "of what goes out", "'1 Gbps'"),
        OptionRule("database", _choice("duckdb"), "the database beside Spark", "'duckdb'"),
    )
)
LINK_OPTIONS = OptionRules(
    (
        OptionRule("bandwidth", parse_bandwidth, "of the link, in each direction", "'100 Mbps'"),
        OptionRule("latency", _duration, "one way", "'20 ms'"),
    )
)
