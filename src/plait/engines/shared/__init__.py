"""Queries computed together, or one by itself, one micro-batch at a time, in a database."""
