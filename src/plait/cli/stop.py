"""`plait stop`: stops a running system at a batch boundary."""

from __future__ import annotations

import click

from plait.api import attach
from plait.cli.invocation import folder_option, json_option, progress, write_json, write_result
from plait.runtime import DEFAULT_STATE


@click.command("stop")
@folder_option("--state", DEFAULT_STATE, "The state folder of the system.")
@json_option
def command(state: str, as_json: bool) -> None:
    """Stop a running system.

    It ends when the micro-batches that are going on are done. The next `plait run` with the same file and
    state folder goes on, with the queries that were added and without those that were dropped.

    \b
    Examples:
      plait stop
      plait stop --state /data/state
    """
    with progress("stopping"):
        attach(state).stop()
    if as_json:
        write_json({"stopped": True})
    else:
        write_result("stopped", None)
