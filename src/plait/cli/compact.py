"""`plait compact`: merges small files of results, and removes what is kept too long or is too much."""

from __future__ import annotations

import click

from plait.api import compact
from plait.cli.invocation import FileName, folder_option, json_option, progress, write_json, write_result
from plait.cli.results import QueryName
from plait.errors import ExternalError
from plait.runtime import DEFAULT_STATE
from plait.runtime.progress import tended_lines


@click.command("compact")
@click.argument("queries", metavar="[QUERY]...", nargs=-1, type=QueryName())
@folder_option("--state", DEFAULT_STATE, "The state folder of the run.")
@click.option(
    "--results", type=FileName(), metavar="DIR", help="Where the results are now, if they were moved."
)
@click.option(
    "--older-than", default="0 s", metavar="TIME", help="Merge only files that are as old, such as 1h."
)
@click.option(
    "--retain",
    metavar="LIMIT",
    help="Remove rows that are older, or too much: 7d, 10GB, or both. Queries may say it themselves.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done first, and do nothing.")
@json_option
def command(
    queries: tuple[str, ...],
    state: str,
    results: str | None,
    older_than: str,
    retain: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Merge small files of results, and remove old rows.

    Of the queries that are named, or of all; while the system runs, too. Whoever reads the results meanwhile
    finds each row once. Rows are removed only of queries with retain in their WITH (…), or with --retain.

    \b
    Examples:
      plait compact
      plait compact gate_17 --older-than 1h
      plait compact --retain 7d --dry-run
    """
    with progress("compacting"):
        done = compact(
            *queries, state=state, results=results, older_than=older_than, retain=retain, dry_run=dry_run
        )
    if as_json:
        write_json(done.to_json())
    else:
        lines = [*tended_lines(done)] or ["nothing to do"]
        if dry_run and done.is_something:
            lines = ["nothing is done; it would have", *(f"  {line}" for line in lines)]
        write_result("\n".join(lines), None)
    if done.trouble:
        trouble = "\n".join(done.trouble.values())
        raise ExternalError("compact", "not everything could be done", detail=trouble)
