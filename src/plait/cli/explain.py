"""`plait explain`: how a query runs on Spark, and why so."""

from __future__ import annotations

from pathlib import Path

import click

from plait.cli.evaluate import FileOrQuery, files_and_queries
from plait.cli.invocation import folder_option, open_session, output_option, progress, write_result
from plait.runtime import DEFAULT_RESULTS
from plait.runtime.outlets import destination, guarantee


@click.command("explain")
@click.argument("arguments", metavar="FILE... [QUERY]...", nargs=-1, required=True, type=FileOrQuery())
@folder_option("--results", DEFAULT_RESULTS, "Where results would go.")
@output_option
def command(arguments: tuple[str, ...], results: str, output: str | None) -> None:
    """Say how a query runs on Spark, and why so.

    Spark's own streaming operators compute it wherever they can; what they cannot do exactly is computed in
    DuckDB once a micro-batch, and the reasons are given. Also said is where the rows go, and how often each
    is there. Nothing is run.

    FILE and QUERY are as for `plait evaluate`; without a QUERY, all are explained.

    \b
    Examples:
      plait explain examples/traffic.sql left_turns
    """
    files, names = files_and_queries(arguments, "explain")
    with open_session(files, output) as session, progress("planning"):
        parts = []
        for name in names or session.queries:
            query = session.query(name)
            where = destination(query, Path(results))
            parts.append(f"{session.explain(name)}\n  results go to {where}: {guarantee(query.sink)}")
    write_result("\n\n".join(parts), output)
