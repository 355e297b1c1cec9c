"""Runs fragments: the state folder, the micro-batches, results and progress."""
