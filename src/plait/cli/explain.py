"""`plait explain`: how a query runs on Spark, and why so."""

from __future__ import annotations

import click

from plait.cli.evaluate import FileOrQuery, files_and_queries
from plait.cli.invocation import folder_option, open_session, output_option, progress, write_result
from plait.cli.running_options import engines_option, planner_option
from plait.runtime import DEFAULT_RESULTS


@click.command("explain")
@click.argument("arguments", metavar="FILE... [QUERY]...", nargs=-1, required=True, type=FileOrQuery())
@folder_option("--results", DEFAULT_RESULTS, "Where results would go.")
@planner_option
@engines_option
@output_option
def command(arguments: tuple[str, ...], results: str, planner: str, engines: str, output: str | None) -> None:
    """Say how a query runs on Spark, and why so.

    Queries that run together are computed in DuckDB once a micro-batch, from streams that are read once. Of a
    query by itself, Spark's own streaming operators compute what they can do exactly, and DuckDB the rest,
    for the reasons that are given. Also said is where the rows go, and how often each is there. Nothing is
    run.

    FILE and QUERY are as for `plait evaluate`; without a QUERY, all are explained.

    \b
    Examples:
      plait explain examples/traffic.sql left_turns
    """
    files, names = files_and_queries(arguments, "explain")
    with open_session(files, output) as session, progress("planning"):
        text = session.explain(*names, planner=planner, engines=engines, results=results)
    write_result(text, output)
