"""Runs fragments: the state folder, the micro-batches, results and progress."""

from pathlib import Path

# Where a run keeps its state, and where results go, unless it is said.
DEFAULT_STATE = Path("plait-state")
DEFAULT_RESULTS = Path("results")
