"""`plait merge`: lets a running system compute together what came one by one, without stopping it."""

from __future__ import annotations

from dataclasses import asdict

import click

from plait.api import attach
from plait.cli.dry_run import checked_format, dry_format_option, dry_run_option, write_difference
from plait.cli.invocation import folder_option, json_option, progress, write_json, write_result
from plait.runtime import DEFAULT_STATE


@click.command("merge")
@folder_option("--state", DEFAULT_STATE, "The state folder of the system.")
@dry_run_option
@dry_format_option
@json_option
@click.pass_context
def command(context: click.Context, state: str, dry_run: bool, output_format: str, as_json: bool) -> None:
    """Let a running system compute together what came one by one.

    Queries that were added one after the other may each have a streaming query of their own, where they would
    share one if they had come together. They are handed over to one: for a while both compute them, and each
    gives a part of the rows by event time, so that none is lost or there twice. What was left ends by itself
    when its streams have come so far. A start of the system does the same.

    Queries that cannot be handed over are named, with the reason.

    \b
    Examples:
      plait merge
      plait merge --state /data/state --json
      plait merge --dry-run
    """
    system = attach(state)
    shown = checked_format(context, output_format, as_json, dry_run)
    if dry_run:
        with progress("planning"):
            difference = system.would_merge()
        write_difference(difference, shown)
        return
    with progress("merging"):
        merged = system.merge()
    if as_json:
        write_json(asdict(merged))
    else:
        write_result(merged.to_text(), None)
