"""What `plait add`, `plait drop` and `plait plan --against` show of a change that is not made."""

from __future__ import annotations

import click

from plait.api import Difference
from plait.cli.invocation import format_or_json, is_given, terminal_width, write_json, write_result
from plait.errors import UserError

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would happen, and do nothing; of a stopped system too."
)
dry_format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(("text", "json", "dot", "svg")),
    default="text",
    show_default=True,
    help="Of --dry-run: svg is a picture, dot the same for Graphviz.",
)


def checked_format(context: click.Context, output_format: str, as_json: bool, dry_run: bool) -> str:
    """The format that is asked for, which is for what would happen."""
    if not dry_run and is_given(context, "output_format"):
        raise UserError("usage", "--format is for --dry-run", hint="--json is there without")
    return format_or_json(context, output_format, as_json)


def write_difference(difference: Difference, output_format: str, output: str | None = None) -> None:
    match output_format:
        case "json":
            write_json(difference.to_json(), output)
        case "dot":
            write_result(difference.to_dot(), output)
        case "svg":
            write_result(difference.to_svg(), output)
        case _:
            write_result(difference.to_text(terminal_width(output)), output)
