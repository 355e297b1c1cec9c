"""`plait add`: adds the queries of files to a running system, without stopping it."""

from __future__ import annotations

from dataclasses import asdict

import click

from plait.api import Changed, attach
from plait.cli.dry_run import checked_format, dry_format_option, dry_run_option, write_difference
from plait.cli.invocation import (
    STANDARD,
    FileName,
    folder_option,
    json_option,
    progress,
    standard_input,
    write_json,
    write_result,
)
from plait.runtime import DEFAULT_STATE
from plait.runtime.waiting import time_text


@click.command("add")
@click.argument("file", metavar="FILE", type=FileName())
@folder_option("--state", DEFAULT_STATE, "The state folder of the system.")
@dry_run_option
@dry_format_option
@json_option
@click.pass_context
def command(
    context: click.Context, file: str, state: str, dry_run: bool, output_format: str, as_json: bool
) -> None:
    """Add the queries of a file to a running system.

    All queries of the file are one change: they are there together or not at all, also if something crashes.
    They may read the streams, tables and queries that the system knows, and declare more. Other queries go on
    without gap or duplicate. A new query gives windows that start, and rows that come, after the latest event
    time that its streams had brought before.

    With --dry-run nothing is added: what would start, what it would share and cost, and what would happen to
    the others is shown, as a picture too (--format svg).

    A query of a name that was used before gets a number: `name#2`.

    \b
    Examples:
      plait add more.sql
      plait add more.sql --state /data/state
      plait add more.sql --dry-run
      echo "CREATE CONTINUOUS QUERY …" | plait add -
    """
    system = attach(state)
    shown = checked_format(context, output_format, as_json, dry_run)
    if dry_run:
        with progress("planning"):
            if file == STANDARD:
                source = standard_input()
                difference = system.would_add_text(source.text, source.name)
            else:
                difference = system.would_add(file)
        write_difference(difference, shown)
        return
    with progress("adding"):
        if file == STANDARD:
            source = standard_input()
            added = system.add_text(source.text, source.name)
        else:
            added = system.add(file)
    if as_json:
        write_json(asdict(added))
    else:
        write_result(_text(added), None)


def _text(added: Changed) -> str:
    return "\n".join(
        f"added {name}" + ("" if after_us is None else f", which sees what comes after {time_text(after_us)}")
        for name, after_us in added.added.items()
    )
