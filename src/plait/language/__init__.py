"""The language: from SQL text to a workload that is checked against its own catalog.

`loading` reads files; `statements` (on `dialect`) parses them; `catalog_builder` collects what they declare;
`bind` turns every query into a logical plan, by way of `bind_select` (whole queries), `bind_items`,
`bind_windows` and `bind_joins` (FROM), `bind_block` (the clauses above it) and `bind_expressions`; `syntax`
lists what may be written at all.
"""

from plait.language.loading import (
    declared_after,
    declared_names,
    load,
    load_after,
    load_text,
    load_texts,
)
from plait.language.options import secret

__all__ = ["declared_after", "declared_names", "load", "load_after", "load_text", "load_texts", "secret"]
