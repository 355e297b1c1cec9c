"""Plait plans many continuous SQL queries together.

>>> import plait
>>> session = plait.open_text("CREATE STREAM s (x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
>>> session
Session(1 stream, 0 tables, 0 sites, 0 queries)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.api import (
        Check,
        Comparison,
        Plan,
        Rows,
        Running,
        Session,
        System,
        attach,
        compact,
        open,  # noqa: A004 (reads `plait.open(…)`)
        open_text,
    )

    __version__: str

__all__ = [
    "Check",
    "Comparison",
    "Plan",
    "Rows",
    "Running",
    "Session",
    "System",
    "__version__",
    "attach",
    "compact",
    "open",
    "open_text",
]


def __getattr__(name: str) -> Any:
    # Parsers and databases take half a second to import, which `plait --help` should not wait for.
    if name == "__version__":
        from importlib.metadata import version

        return version("plait")
    if name in __all__:
        from plait import api

        return getattr(api, name)
    raise AttributeError(f"module 'plait' has no attribute {name!r}")
