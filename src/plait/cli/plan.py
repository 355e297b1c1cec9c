"""`plait plan`: what runs where, what is shared, what it costs."""

from __future__ import annotations

from collections.abc import Sequence

import click

from plait.api import Plan
from plait.api.difference import against as api_against
from plait.cli.dry_run import write_difference
from plait.cli.invocation import (
    OneOf,
    files_argument,
    format_or_json,
    is_given,
    json_option,
    notify,
    open_session,
    output_option,
    progress,
    read_texts,
    sample_option,
    terminal_width,
    write_json,
    write_result,
)
from plait.errors import InfeasibleError, UserError
from plait.notices import Notice
from plait.planners import DEFAULT_PLANNER, PLANNERS
from plait.quantity_text import counted

FORMATS = ("text", "json", "dot", "svg")
REFUSALS_SHOWN = 10


@click.command("plan")
@files_argument
@click.option(
    "--planner",
    default=DEFAULT_PLANNER,
    show_default=True,
    type=OneOf(PLANNERS),
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
@click.option(
    "--against",
    metavar="STATE",
    help="Show what would change in the system with this state folder, running or stopped.",
)
@json_option
@sample_option
@output_option
@click.option("--full", is_flag=True, help="Leave nothing out of long lists.")
@click.pass_context
def command(
    context: click.Context,
    files: tuple[str, ...],
    planner: str,
    compare: bool,
    output_format: str,
    against: str | None,
    as_json: bool,
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
      plait plan queries.sql --json | jq '.cost'
      plait plan more.sql --against plait-state

    With --against STATE: what would start, stop and stay, what would happen to what is kept, and what that
    would cost. A file that declares streams which the system knows is taken for a new version of all that it
    computes: queries that are not in it would be dropped. Any other file is what would be added.

    Statistics that nobody declared are assumed, and the plan says so. Queries that the declared sites cannot
    carry are refused, and named on standard error; the exit code is 3 if none of the queries is left.
    """
    output_format = format_or_json(context, output_format, as_json)
    if full and (compare or output_format != "text"):
        raise UserError("usage", "--full is for the text of one plan", hint="the other formats are complete")
    if against is not None:
        if compare or sample or full or is_given(context, "planner"):
            raise UserError("usage", "--against goes by the system: it takes --format and --output alone")
        with progress("planning"):
            difference = api_against(against, read_texts(files))
        write_difference(difference, output_format, output)
        return 0
    if not compare:
        with open_session(files, output) as session, progress("planning"):
            plan = session.plan(planner, sample=sample)
        _write_plan(plan, output_format, output, full)
        return _say_what_to_know([plan])
    if is_given(context, "planner"):
        raise UserError("usage", "--compare takes all planners, and --planner one", hint="give one of them")
    if output_format not in ("text", "json"):
        raise UserError("usage", "--compare has no picture", hint="use --format text or json")
    with open_session(files, output) as session, progress("planning"):
        comparison = session.compare(sample=sample)
    if output_format == "json":
        write_json(comparison.to_json(), output)
    else:
        write_result(comparison.to_text(terminal_width(output)), output)
    return _say_what_to_know(comparison)


def _write_plan(plan: Plan, output_format: str, output: str | None, full: bool) -> None:
    match output_format:
        case "json":
            write_json(plan.to_json(), output)
        case "dot":
            write_result(plan.to_dot(), output)
        case "svg":
            write_result(plan.to_svg(), output)
        case _:
            write_result(plan.to_text(full=full, width=terminal_width(output)), output)


def _say_what_to_know(plans: Sequence[Plan]) -> int:
    """Assumptions and refusals, each once; returns the exit code."""
    notify(dict.fromkeys(notice for plan in plans for notice in plan.report.notices))
    notify(_refusals(plan, of_several=len(plans) > 1) for plan in plans if plan.deployment.refused)
    return 0 if any(plan.is_feasible for plan in plans) else InfeasibleError.exit_code


def _refusals(plan: Plan, *, of_several: bool) -> Notice:
    refused = plan.deployment.refused
    by = f"`{plan.report.planner}` refuses" if of_several else "the sites cannot carry"
    names = ", ".join(f"`{query.name}`" for query in refused[:REFUSALS_SHOWN])
    more = f" and {len(refused) - REFUSALS_SHOWN:,} more" if len(refused) > REFUSALS_SHOWN else ""
    of = counted(len(plan.deployment.queries), "query", "queries")
    return Notice(
        "refused-queries",
        f"{by} {len(refused):,} of {of}: {names}{more}",
        hint="the plan says what they lack: declare larger sites, or drop queries",
    )
