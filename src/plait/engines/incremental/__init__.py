"""Queries computed exactly, one micro-batch at a time, in a database: for every plan there is.

| module | decides |
|---|---|
| `bands` | what has become final, and what each node needs of its inputs for it |
| `layout` | what is stored, and in which stages the rest is computed |
| `statements` | the SQL of a stage |
| `numbering` | the rows of row windows |
| `slices` | into how many statements much work is cut |
| `state` | what the file holds besides rows |
| `query` | what a micro-batch does, in one transaction |
"""

from plait.engines.incremental.query import IncrementalQuery

__all__ = ["IncrementalQuery"]
