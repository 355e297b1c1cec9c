"""`plait plan`: what runs where, what is shared, what it costs."""

from __future__ import annotations

import click

from plait.api import compared
from plait.cli.invocation import (
    Invocation,
    files_argument,
    notify,
    open_session,
    output_option,
    progress,
    sample_option,
    terminal_width,
    write_json,
    write_result,
)
from plait.errors import InfeasibleError, UserError
from plait.planners import DEFAULT_PLANNER, PLANNERS
from plait.planners.base import PlanningStatus

FORMATS = ("text", "json", "dot", "svg")


@click.command("plan")
@files_argument
@click.option(
    "--planner",
    default=DEFAULT_PLANNER,
    show_default=True,
    metavar="NAME",
    help=f"One of {', '.join(PLANNERS)}.",
)
@click.option("--compare", is_flag=True, help="Plan with every planner and show the costs side by side.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="json is the plan document, svg a picture, dot the same for Graphviz.",
)
@sample_option
@output_option
@click.option("--full", is_flag=True, help="Leave nothing out of long lists.")
@click.pass_obj
def command(
    invocation: Invocation,
    files: tuple[str, ...],
    planner: str,
    compare: bool,
    output_format: str,
    sample: bool,
    output: str | None,
    full: bool,
) -> int:
    """Plan all queries together, and show what is shared and what it costs.

    Queries that need the same filter, join or window get it from one operator, however each of them was
    written. Nothing is run: costs follow from the declared rates, or with --sample from stored data.

    \b
    Examples:
      plait plan queries.sql
      plait plan queries.sql --compare
      plait plan queries.sql --format svg --output plan.svg
      plait plan queries.sql --format json | jq '.cost'

    Statistics that nobody declared are assumed, and the plan says so. The exit code is 3 if the declared
    sites can carry none of the queries.
    """
    invocation.json = output_format == "json"
    session = open_session(files)
    if compare:
        if output_format not in ("text", "json"):
            raise UserError("usage", "--compare has no picture", hint="use --format text or json")
        with progress("planning"):
            plans = session.compare(sample=sample)
        if output_format == "json":
            write_json({"plans": [plan.to_json() for plan in plans]}, output)
        else:
            write_result(compared(plans), output)
        return 0
    with progress("planning"):
        plan = session.plan(planner, sample=sample)
    notify(plan.report.notices)
    match output_format:
        case "json":
            write_json(plan.to_json(), output)
        case "dot":
            write_result(plan.to_dot(), output)
        case "svg":
            write_result(plan.to_svg(), output)
        case _:
            write_result(plan.to_text(full=full, width=terminal_width(output)), output)
    return InfeasibleError.exit_code if plan.report.status is PlanningStatus.INFEASIBLE else 0
