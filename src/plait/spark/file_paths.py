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


def path_of_url(url: str) -> Path:
    """
    >>> path_of_url("file:///data/a%5B1%5D")
    PosixPath('/data/a[1]')
    """
    return Path(unquote(urlsplit(url).path))
