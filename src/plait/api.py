"""Plait in Python: open SQL files, check, plan and evaluate them.

The command line is a thin layer over this module, so both always say the same. In a notebook a plan shows
itself as a picture and rows as a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plait import language
from plait.errors import UserError, closest
from plait.workload import Query, Workload


def open(path: str | Path | Sequence[str | Path]) -> Session:  # noqa: A001 (reads `plait.open(…)`)
    """Open one or several SQL files; a folder stands for all `*.sql` files in it, in order of their names."""
    paths = [path] if isinstance(path, str | Path) else list(path)
    return Session(language.load([file for each in paths for file in _files(Path(each))]))


def open_text(text: str, name: str = "<sql>", base: Path | None = None) -> Session:
    """Open SQL text. Paths in it are relative to `base`, the current folder unless given."""
    return Session(language.load_text(text, name=name, base=base or Path.cwd()))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.sql"))
    if not files:
        raise UserError("no-files", f"the folder {path} holds no .sql files")
    return files


class Session:
    """What some SQL files declare, checked: every stream, table, site, link and query."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def query(self, name: str) -> Query:
        queries = self.workload.queries
        if name.lower() not in queries:
            raise UserError(
                "unknown-query",
                f"there is no query `{name}`",
                hint=closest(name, (query.name for query in queries.values())),
            )
        return queries[name.lower()]

    def __repr__(self) -> str:
        catalog = self.workload.catalog
        counts = (
            counted(len(catalog.streams), "stream"),
            counted(len(catalog.tables), "table"),
            counted(len(catalog.sites), "site"),
            counted(len(self.workload.queries), "query", "queries"),
        )
        return f"Session({', '.join(counts)})"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """
    >>> counted(1, "stream"), counted(2, "query", "queries")
    ('1 stream', '2 queries')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
