"""The language: from SQL text to a workload that is checked against its own catalog.

`loading` reads files; `statements` (on `dialect`) parses them; `catalog_builder` collects what they
declare; `bind` turns every query into a logical plan, by way of `bind_select` (whole queries), `bind_from`
(what is read), `bind_block` (the clauses above), `bind_expressions` and `bind_windows`; `syntax` lists what
may be written.
"""

from plait.language.loading import load, load_text

__all__ = ["load", "load_text"]
