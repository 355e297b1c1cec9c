"""Runs fragments: the state folder, the micro-batches, results and progress."""

from pathlib import Path

# Where a run keeps its state, and where results go, unless it is said.
DEFAULT_STATE = Path("plait-state")
DEFAULT_RESULTS = Path("results")

# What a micro-batch may give at once, unless it is said: rows are in memory until they are written.
MOST_ROWS = 20_000_000
