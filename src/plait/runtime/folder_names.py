"""What folders are called: those of queries, streams and fragments, and those of results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

from plait.expressions.types import Type

# The column that says whose a row is, where several queries share a file.
QUERY_COLUMN = "query"


def folder_name(name: str) -> str:
    """The folder of a query or stream: its key where that is a plain name, else one made from it.

    >>> folder_name("Gate_17"), folder_name("../x")
    ('gate_17', '---x-d6b96a97')
    """
    key = name.lower()
    if key.isascii() and key.isidentifier():
        return key
    # What file systems or Spark take for more than a sign of a name is left out; the hash tells names apart.
    return f"{re.sub('[^a-z0-9_]', '-', key)[:60]}-{sha256(key.encode()).hexdigest()[:8]}"


def shared_folder_name(fragment: str, columns: Sequence[str], types: Sequence[Type]) -> str | None:
    """The folder of all queries of a fragment with these columns; None if one is named like ours."""
    if QUERY_COLUMN in (column.lower() for column in columns):
        return None
    text = "\n".join(f"{column} {type_}" for column, type_ in zip(columns, types, strict=True))
    return f"{fragment}-{sha256(text.encode()).hexdigest()[:8]}"
