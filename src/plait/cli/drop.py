"""`plait drop`: drops queries of a running system, without stopping it."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from plait.api import attach
from plait.cli.dry_run import checked_format, dry_format_option, dry_run_option, write_difference
from plait.cli.invocation import folder_option, is_terminal, json_option, progress, write_json, write_result
from plait.cli.results import QueryName
from plait.errors import PlaitError
from plait.runtime import DEFAULT_STATE


@click.command("drop")
@click.argument("queries", metavar="QUERY...", nargs=-1, required=True, type=QueryName())
@folder_option("--state", DEFAULT_STATE, "The state folder of the system.")
@click.option("--yes", is_flag=True, help="Drop also what other queries read; they go on.")
@dry_run_option
@dry_format_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    queries: tuple[str, ...],
    state: str,
    yes: bool,
    dry_run: bool,
    output_format: str,
    as_json: bool,
) -> None:
    """Drop queries of a running system.

    All of them are one change. What they have given stays, and can be read. What was kept for them alone is
    let go. A query that others read is dropped if you say so: on a terminal you are asked.

    \b
    Examples:
      plait drop gate_17
      plait drop gate_17 gate_18 --state /data/state
      plait drop read_by_others --yes
      plait drop gate_17 --dry-run
    """
    system = attach(state)
    shown = checked_format(context, output_format, as_json, dry_run)
    if dry_run:
        with progress("planning"):
            difference = system.would_drop(*queries)
        write_difference(difference, shown)
        return
    try:
        with progress("dropping"):
            dropped = system.drop(*queries, sure=yes)
    except PlaitError as error:
        in_use = all(each["code"] == "query-in-use" for each in error.to_json()["errors"])
        if not in_use or as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            raise
        click.echo(error.render(), err=True)
        click.confirm("drop all the same?", abort=True, err=True)
        dropped = system.drop(*queries, sure=True)
    if as_json:
        write_json(asdict(dropped))
    else:
        write_result("\n".join(f"dropped {name}" for name in dropped.dropped), None)
