"""The one tree of errors, and how an error shows itself.

Whose fault it is decides the class: the user's (`UserError`), a gap of ours that has another way
(`UnsupportedError`), the machines' (`InfeasibleError`), something outside (`ExternalError`) or our own
(`InternalError`). Command line, Python and JSON render the same object. Several errors of one file travel
together as `ErrorReport`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Any, ClassVar


@dataclass(frozen=True)
class Source:
    """A text that statements come from: a file, or a string given in Python."""

    name: str
    text: str = field(repr=False)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (both from 1) of a character offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        start = self._line_starts[number - 1]
        return self.text[start : (self.text.find("\n", start) + 1 or len(self.text) + 1) - 1].rstrip("\r")

    @cached_property
    def _line_starts(self) -> list[int]:
        # Hundreds of errors in a text of megabytes each ask for their line.
        return [0, *(newline.end() for newline in re.finditer("\n", self.text))]


@dataclass(frozen=True)
class Span:
    """Characters `start` to `end` (exclusive) of a source."""

    source: Source
    start: int
    end: int

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def underlined(self, width: int = 100) -> str:
        """The span's first line with carets below, cut to about `width` characters around the span."""
        line_number, column = self.source.position(self.start)
        text = self.source.line(line_number)
        length = max(1, min(self.end - self.start, len(text) - column + 1))
        first = 0
        if len(text) > width:
            first = max(0, min(column - 1 - width // 3, len(text) - width))
            text = ("…" if first else "") + text[first : first + width]
            column = column - first + (1 if first else 0)
        length = max(1, min(length, len(text) - column + 1))
        shown = "".join(c if c.isprintable() else " " for c in text)
        prefix = f"{line_number:>5} | "
        return f"{prefix}{shown}\n{' ' * (len(prefix) - 2)}| {' ' * (column - 1)}{'^' * length}"


class PlaitError(Exception):
    """An error with a stable code, the place, the reason and a way out."""

    kind: ClassVar[str] = "error"
    exit_code: int = 1

    def __init__(
        self, code: str, message: str, *, detail: str = "", hint: str = "", span: Span | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail
        self.hint = hint
        self.span = span

    def at(self, span: Span | None) -> PlaitError:
        """Give the error a place if it has none yet; returns itself so that it can be raised."""
        if self.span is None:
            self.span = span
        return self

    def render(self) -> str:
        lines = [f"{self.kind}[{self.code}]: {self.message}"]
        if self.span is not None:
            lines += [f"  --> {self.span}", self.span.underlined()]
        if self.detail:
            lines += [f"  = {line}" for line in self.detail.splitlines()]
        if self.hint:
            first, *rest = self.hint.splitlines()
            lines += [f"  hint: {first}", *(f"        {line}" for line in rest)]
        return "\n".join(lines)

    @property
    def errors(self) -> tuple[PlaitError, ...]:
        """All that is wrong: itself, unless it is a report of several."""
        return (self,)

    def to_json(self) -> dict[str, Any]:
        """The same shape for one error and for a report of several."""
        return {"errors": [error._entry() for error in self.errors]}

    def _entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "kind": self.kind,
            "code": self.code,
            "message": self.message,
            "detail": self.detail,
            "hint": self.hint,
        }
        if self.span is not None:
            line, column = self.span.source.position(self.span.start)
            entry["file"] = self.span.source.name
            entry["line"], entry["column"] = line, column
            entry["start"], entry["end"] = self.span.start, self.span.end
        return entry

    def __str__(self) -> str:
        return self.render()


class UserError(PlaitError):
    """The input is wrong."""

    kind = "error"
    exit_code = 2


class UnsupportedError(UserError):
    """The input means something, but Plait does not do it; the hint says what works instead."""

    kind = "unsupported"


class InfeasibleError(PlaitError):
    """The machines cannot carry it: names the binding resource and by how much it is exceeded."""

    kind = "infeasible"
    exit_code = 3


class ExternalError(PlaitError):
    """Spark, a database, the file system or a solver failed."""

    kind = "external"
    exit_code = 4


class InternalError(PlaitError):
    """A bug in Plait. Please report it."""

    kind = "internal"
    exit_code = 70


class ErrorReport(PlaitError):  # noqa: N818 - it is a report, of errors
    """Several errors found in one go, in the order of their places. The worst gives the exit code."""

    def __init__(self, errors: Sequence[PlaitError]) -> None:
        if not errors:
            raise ValueError("an error report needs errors")
        super().__init__("report", f"{len(errors)} error{'s' if len(errors) > 1 else ''}")
        self._errors = tuple(
            sorted(errors, key=lambda e: (e.span.source.name, e.span.start) if e.span else ("", -1))
        )
        self.exit_code = max(error.exit_code for error in errors)

    @property
    def errors(self) -> tuple[PlaitError, ...]:
        return self._errors

    def render(self) -> str:
        return "\n\n".join(error.render() for error in self.errors)


class QueriesFailedError(PlaitError):
    """A batch cannot be computed with these queries, each by its own fault, and can without them."""

    def __init__(self, failed: Mapping[str, PlaitError]) -> None:
        names = ", ".join(f"`{name}`" for name in failed)
        super().__init__("query-failed", f"a micro-batch fails by {names}")
        self.failed = failed

    @property
    def errors(self) -> tuple[PlaitError, ...]:
        return tuple(self.failed.values())


def reported(errors: Sequence[PlaitError]) -> PlaitError:
    """All of them: a report, unless there is but one."""
    return errors[0] if len(errors) == 1 else ErrorReport(errors)


def closest(name: str, candidates: Iterable[str]) -> str:
    """A hint `did you mean …?`, or the list of what there is, or nothing.

    >>> closest("flihgts", ["flights", "weather"])
    'did you mean `flights`?'
    """
    known = _Names.of(tuple(candidates))
    match = known.closest(name.lower()[:_LONGEST_COMPARED])
    if match:
        return f"did you mean `{match}`?"
    if known.shown and len(known.shown) <= 12:
        return f"there is {', '.join(f'`{candidate}`' for candidate in sorted(known.shown.values()))}"
    return ""


_LONGEST_COMPARED = 128
_NEIGHBOURS = 30


class _Names:
    """Names to compare with.

    Of many, only those are compared that share the longest beginnings or endings with what is looked for,
    since a misspelling leaves one of them intact, and hundreds of errors may look among thousands of names.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.shown = {name.lower(): name for name in sorted(set(names))}
        self._sorted = sorted(self.shown)
        self._reversed = sorted(name[::-1] for name in self.shown)

    @staticmethod
    @lru_cache(maxsize=4)
    def of(names: tuple[str, ...]) -> _Names:
        return _Names(names)

    def closest(self, folded: str) -> str:
        like_it = {*_around(folded, self._sorted), *(n[::-1] for n in _around(folded[::-1], self._reversed))}
        matches = get_close_matches(folded, sorted(like_it), n=1, cutoff=0.62)
        return self.shown[matches[0]] if matches else ""


def _around(name: str, ordered: Sequence[str]) -> Sequence[str]:
    place = bisect_left(ordered, name)
    return ordered[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS]
