"""The `WITH (key = value, …)` options of each kind of statement.

Decides which keys there are, how their values read and in which unit they arrive:

| unit | options |
|---|---|
| rows per second | rate |
| bytes | row_bytes, memory |
| bytes per second | bandwidth, in_bandwidth, out_bandwidth |
| microseconds | idle_timeout, max_future, latency |

`${NAME}` in a value stands for a variable of the environment. Such a value is a `Secret`, whose text appears
nowhere but where it is used; options that shape a plan, and so show in it, cannot be given that way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath, PureWindowsPath

from plait.catalog import OptionValue, Secret
from plait.errors import PlaitError, Span, UserError, closest
from plait.language.limits import clip
from plait.language.quantities import (
    QuantityError,
    parse_bandwidth,
    parse_bytes,
    parse_count,
    parse_duration,
    parse_number,
    parse_rate,
)

MAX_CORES = 10**6
MAX_PATH_LENGTH = 1000


@dataclass(frozen=True)
class WrittenOption:
    """An option as it stands in the text: the value is a string's content, a number or a word."""

    key: str
    key_span: Span
    text: str
    is_string: bool
    span: Span


@dataclass(frozen=True)
class Option:
    """An option read: the key in lower case, the value in the unit said above. `span` is the value's."""

    key: str
    value: OptionValue
    span: Span
    key_span: Span


@dataclass(frozen=True)
class OptionRule:
    """`key` may end in `.*`, which stands for the name of a column."""

    key: str
    read: Callable[[str], OptionValue]
    documentation: str
    example: str
    may_be_secret: bool = False


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
    """'earliest', 'latest', or a time in UTC as `YYYY-MM-DD HH:MM:SS[.ffffff]`."""
    folded = text.strip().lower()
    if folded in ("earliest", "latest"):
        return folded
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise QuantityError(
            f"`{clip(text)}` is no position in a stream", "use 'earliest', 'latest' or '2026-01-31 12:00:00'"
        ) from None
    if moment.tzinfo is not None:
        raise QuantityError("a start position is in UTC and has no zone", "for example '2026-01-31 12:00:00'")
    if moment.year < 1970:
        raise QuantityError("event time begins in 1970", "for example '2026-01-31 12:00:00'")
    return moment.isoformat(sep=" ")


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


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_VARIABLE = re.compile(r"\$\{([^}]*)\}?")


_STORAGE = (
    OptionRule("connector", _choice("files"), "where the data is", "'files'"),
    OptionRule(
        "path", check_path, "folder or file, relative to the SQL file", "'data/flights'", may_be_secret=True
    ),
    OptionRule("format", _choice("parquet", "csv", "json"), "how files are written", "'parquet'"),
    OptionRule("header", _read_boolean, "CSV files begin with the columns' names", "true"),
    OptionRule("delimiter", _read_character, "what separates values in CSV files", "','"),
    OptionRule("site", _read_name, "where the data enters", "'atlanta'"),
    OptionRule("row_bytes", parse_bytes, "mean size of a row", "120"),
    OptionRule("distinct.*", parse_count, "number of different values of a column", "300"),
)
STREAM_OPTIONS = (
    *_STORAGE,
    OptionRule("rate", parse_rate, "rows a second", "5"),
    OptionRule("start", _read_start, "where reading begins", "'earliest'"),
    OptionRule(
        "idle_timeout", _positive_duration, "when a silent stream stops holding others back", "'5 minutes'"
    ),
    OptionRule("max_future", _positive_duration, "how far ahead an event time may be", "'1 hour'"),
)
TABLE_OPTIONS = (
    *_STORAGE,
    OptionRule("rows", lambda text: parse_count(text, least=0), "number of rows", "300"),
)
SITE_OPTIONS = (
    OptionRule("cores", lambda text: parse_number(text, most=MAX_CORES), "cores for operators", "4"),
    OptionRule("memory", _memory, "memory for operators", "'16 GB'"),
    OptionRule("bandwidth", parse_bandwidth, "of the network card, in each direction", "'1 Gbps'"),
    OptionRule("in_bandwidth", parse_bandwidth, "of what comes in", "'1 Gbps'"),
    OptionRule("out_bandwidth", parse_bandwidth, "of what goes out", "'1 Gbps'"),
    OptionRule("database", _choice("duckdb"), "the database beside Spark", "'duckdb'"),
)
LINK_OPTIONS = (
    OptionRule("bandwidth", parse_bandwidth, "of the link, in each direction", "'100 Mbps'"),
    OptionRule("latency", _duration, "one way", "'20 ms'"),
)


def read_options(
    rules: Iterable[OptionRule],
    written: Iterable[WrittenOption],
    environment: Mapping[str, str] | None = None,
) -> tuple[tuple[Option, ...], list[PlaitError]]:
    """All options that can be read, and an error for each that cannot."""
    by_key = {rule.key: rule for rule in rules}
    variables = os.environ if environment is None else environment
    given: set[str] = set()
    options: dict[str, Option] = {}
    errors: list[PlaitError] = []
    for item in written:
        key = item.key.lower()
        try:
            if key in given:
                raise UserError(
                    "duplicate-option", f"`{key}` is given twice", hint="keep one", span=item.key_span
                )
            given.add(key)
            options[key] = Option(
                key, _read_value(_rule(key, by_key, item), item, variables), item.span, item.key_span
            )
        except UserError as error:
            errors.append(error)
    return tuple(options.values()), errors + _conflicts(options, given)


def _rule(key: str, by_key: Mapping[str, OptionRule], item: WrittenOption) -> OptionRule:
    prefix, dot, rest = key.partition(".")
    rule = by_key.get(f"{prefix}.*" if dot and rest else key)
    if rule is None:
        known = [known.replace(".*", ".<column>") for known in by_key]
        suggestion = closest(key, known)
        hint = (
            suggestion if suggestion.startswith("did") else f"there is {', '.join(f'`{k}`' for k in known)}"
        )
        raise UserError(
            "unknown-option", f"there is no option `{clip(key)}` here", hint=hint, span=item.key_span
        )
    return rule


def _read_value(rule: OptionRule, item: WrittenOption, environment: Mapping[str, str]) -> OptionValue:
    if not (item.is_string and "${" in item.text):
        try:
            return rule.read(item.text)
        except QuantityError as error:
            raise UserError(
                "option-value",
                f"`{item.key}`: {error.message}",
                detail=f"{rule.key}: {rule.documentation}, such as {rule.example}",
                hint=error.hint,
                span=item.span,
            ) from None
    if not rule.may_be_secret:
        raise UserError(
            "option-not-secret",
            f"`{item.key}` cannot come from the environment, because plans show it",
            hint=f"write the value, such as {rule.example}",
            span=item.span,
        )
    secret = Secret(item.text, _VARIABLE.sub(lambda found: _variable(found, item, environment), item.text))
    try:
        rule.read(secret.reveal())
    except QuantityError:
        # The reason could quote the value.
        raise UserError(
            "option-value",
            f"`{item.key}`: what `{clip(item.text)}` stands for cannot be used",
            hint=f"it must read like {rule.example}, without `..`",
            span=item.span,
        ) from None
    return secret


def _variable(found: re.Match[str], item: WrittenOption, environment: Mapping[str, str]) -> str:
    name = found[1]
    if not found[0].endswith("}") or not NAME.fullmatch(name):
        raise UserError(
            "option-variable",
            f"`{clip(found[0])}` names no variable",
            hint="for example ${NAME}",
            span=item.span,
        )
    if name not in environment:
        raise UserError(
            "unset-variable",
            f"the variable {name} is not set in the environment",
            hint=f"export {name}=… before you start plait",
            span=item.span,
        )
    return environment[name]


def _conflicts(options: Mapping[str, Option], given: Set[str]) -> list[PlaitError]:
    """Options that need or exclude each other. One that is given and in error is complained of already."""
    errors: list[PlaitError] = []

    def complain(key: str, message: str, hint: str) -> None:
        errors.append(UserError("option-conflict", message, hint=hint, span=options[key].key_span))

    if "connector" in options:
        for needed, example in (("path", "'data/flights'"), ("format", "'parquet'")):
            if needed not in given:
                complain("connector", f"connector 'files' needs a `{needed}`", f"add {needed} = {example}")
    elif "connector" not in given:
        for key in ("path", "format", "header", "delimiter"):
            if key in options:
                complain(
                    key, f"`{key}` is an option of a connector, and none is given", "add connector = 'files'"
                )
    if "format" in options and options["format"].value != "csv":
        for key in ("header", "delimiter"):
            if key in options:
                complain(key, f"`{key}` is an option of format 'csv'", f"leave `{key}` out")
    if "bandwidth" in options:
        for key in ("in_bandwidth", "out_bandwidth"):
            if key in options:
                complain(key, f"`bandwidth` already gives `{key}`", "keep `bandwidth`, or both others")
    return errors
