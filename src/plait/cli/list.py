"""`plait list`: the queries of a running system, how they run, and since when."""

from __future__ import annotations

from dataclasses import asdict

import click

from plait.api import attach
from plait.cli.invocation import folder_option, json_option, terminal_width, write_json, write_result
from plait.runtime import DEFAULT_STATE


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
        write_result(queries.to_text(terminal_width(None)), None)
