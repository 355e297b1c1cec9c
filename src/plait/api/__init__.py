"""Plait in Python: open SQL files, check, plan, evaluate and run them, read results.

The command line is a thin layer over this package, so that both always say the same. In a notebook a plan
shows itself as a picture, rows and comparisons as tables.
"""

from __future__ import annotations

from plait.api.check import Check
from plait.api.difference import Difference
from plait.api.live import Changed, LiveQueries, LiveQuery, Merged, MergedQuery
from plait.api.plans import Comparison, Explanation, Plan
from plait.api.rows import ROWS_SHOWN, EvaluatedRows, ResultRows, Rows
from plait.api.running import Running, published
from plait.api.session import (
    Session,
    open,  # noqa: A004 (reads `plait.open(…)`)
    open_text,
    sql_files,
)
from plait.api.system import System, attach
from plait.api.upkeep import compact

__all__ = [
    "ROWS_SHOWN",
    "Changed",
    "Check",
    "Comparison",
    "Difference",
    "EvaluatedRows",
    "Explanation",
    "LiveQueries",
    "LiveQuery",
    "Merged",
    "MergedQuery",
    "Plan",
    "ResultRows",
    "Rows",
    "Running",
    "Session",
    "System",
    "attach",
    "compact",
    "open",
    "open_text",
    "published",
    "sql_files",
]
