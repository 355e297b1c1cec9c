"""`plait list`: the queries of a running system, how they run, and since when."""

from __future__ import annotations

from dataclasses import asdict

import click

from plait.api import LiveQuery, attach
from plait.cli.invocation import folder_option, json_option, terminal_width, write_json, write_result
from plait.runtime import DEFAULT_STATE
from plait.runtime.waiting import time_text
from plait.table_text import table_text

_COLUMNS = ("query", "way", "fragment", "sees what comes after", "state", "rows", "results")


@click.command("list")
@folder_option("--state", DEFAULT_STATE, "The state folder of the system.")
@json_option
def command(state: str, as_json: bool) -> None:
    """List the queries of a running system.

    \b
    Examples:
      plait list
      plait list --state /data/state --json
    """
    queries = attach(state).queries()
    if as_json:
        write_json({"queries": [asdict(query) for query in queries]})
    else:
        cells = [_cells(query) for query in queries]
        write_result(table_text(_COLUMNS, cells, numeric={5}, width=terminal_width(None)), None)


def _cells(query: LiveQuery) -> list[str]:
    after = "" if query.after_us is None else time_text(query.after_us)
    return [query.name, query.way, query.fragment, after, query.state, f"{query.rows:,}", query.results]
