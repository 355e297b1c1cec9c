"""`plait explain`: how a query runs on Spark, and why so; or how it has run."""

from __future__ import annotations

import click

from plait.api import attach
from plait.cli.evaluate import FileOrQuery, files_and_queries
from plait.cli.invocation import (
    folder_option,
    is_given,
    json_option,
    open_session,
    output_option,
    progress,
    terminal_width,
    write_json,
    write_result,
)
from plait.cli.running_options import engines_option, planner_option
from plait.errors import UserError
from plait.runtime import DEFAULT_RESULTS, DEFAULT_STATE


@click.command("explain")
@click.argument("arguments", metavar="FILE... [QUERY]...", nargs=-1, required=True, type=FileOrQuery())
@folder_option("--results", DEFAULT_RESULTS, "Where results would go.")
@planner_option
@engines_option
@click.option("--analyze", is_flag=True, help="Show what was observed of a query that runs, or ran.")
@folder_option("--state", DEFAULT_STATE, "With --analyze, the state folder of the system.")
@json_option
@output_option
@click.pass_context
def command(
    context: click.Context,
    arguments: tuple[str, ...],
    results: str,
    planner: str,
    engines: str,
    analyze: bool,
    state: str,
    as_json: bool,
    output: str | None,
) -> None:
    """Say how a query runs on Spark, and why so.

    Queries that run together are computed in DuckDB once a micro-batch, from streams that are read once. Of a
    query by itself, Spark's own streaming operators compute what they can do exactly, and DuckDB the rest,
    for the reasons that are given. Also said is where the rows go, and how often each is there. Nothing is
    run.

    FILE and QUERY are as for `plait evaluate`; without a QUERY, all are explained.

    With --analyze only a QUERY is named, which a system runs, or ran last, with that state folder: its steps
    are shown with the rows that the plan goes by beside those that there were, whom each step serves, and
    which share of the cost is the query's.

    \b
    Examples:
      plait explain examples/traffic.sql left_turns
      plait explain left_turns --analyze --state /data/state
    """
    if analyze:
        _analyze(context, arguments, state, as_json, output)
        return
    if as_json or is_given(context, "state"):
        raise UserError("usage", "--json and --state are for --analyze", hint="give --analyze, or neither")
    files, names = files_and_queries(arguments, "explain")
    with open_session(files, output) as session, progress("planning"):
        text = session.explain(*names, planner=planner, engines=engines, results=results)
    write_result(text, output)


def _analyze(
    context: click.Context, queries: tuple[str, ...], state: str, as_json: bool, output: str | None
) -> None:
    for option in ("results", "planner", "engines"):
        if is_given(context, option):
            raise UserError(
                "usage", f"--{option} is for what could run, and --analyze for what does", hint="give one"
            )
    system = attach(state)
    found = [system.analyze(query) for query in queries]
    if as_json:
        write_json({"queries": [each.to_json() for each in found]}, output)
    else:
        write_result("\n\n\n".join(each.to_text(terminal_width(output)) for each in found), output)
