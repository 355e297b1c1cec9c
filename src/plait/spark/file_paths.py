"""Paths of files as Spark takes and gives them: patterns going in, URLs coming out."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit


def literal_path(path: Path) -> str:
    """The path, absolute, with the signs escaped that Spark would take for a pattern.

    >>> literal_path(Path("/data/a[1]"))
    '/data/a\\\\[1\\\\]'
    """
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path.absolute()))


def pattern_of_file(path: Path) -> str:
    """A pattern that only this file matches: Spark streams from folders and from patterns, not from a file.

    >>> pattern_of_file(Path("/data/a.csv"))
    '/data/a.cs[v]'
    """
    literal = literal_path(path)
    return literal if "\\" in literal else f"{literal[:-1]}[{literal[-1]}]"


def path_of_url(url: str) -> Path:
    """
    >>> path_of_url("file:///data/a%5B1%5D")
    PosixPath('/data/a[1]')
    """
    return Path(unquote(urlsplit(url).path))
