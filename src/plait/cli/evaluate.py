"""`plait evaluate`: the rows that queries mean, computed from the definition over stored data."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from plait.api import ROWS_SHOWN, EvaluatedRows, Session
from plait.cli.invocation import (
    STANDARD,
    FileName,
    format_or_json,
    json_option,
    open_session,
    output_option,
    progress,
    terminal_width,
    write_json,
    write_result,
)
from plait.errors import PlaitError, UserError
from plait.quantity_text import counted


class FileOrQuery(FileName):
    """The name of a file or, after that, of a query in it."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        found = super().shell_complete(ctx, param, incomplete)
        files = tuple(a for a in ctx.params.get("arguments") or () if a != STANDARD and _is_file(a))
        try:
            names = open_session(files).queries if files else ()
        except PlaitError:  # it has yet to be mended
            names = ()
        return found + [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command("evaluate")
@click.argument("arguments", metavar="FILE... [QUERY]...", nargs=-1, required=True, type=FileOrQuery())
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="How rows are written.",
)
@json_option
@output_option
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"At most this many rows of each query; 0 is no limit. Tables show {ROWS_SHOWN} by default.",
)
@click.option(
    "--as-of-watermark",
    is_flag=True,
    help="Only what the watermark has closed, as if the streams went on. Otherwise they count as ended.",
)
@click.pass_context
def command(
    context: click.Context,
    arguments: tuple[str, ...],
    output_format: str,
    as_json: bool,
    output: str | None,
    limit: int | None,
    as_of_watermark: bool,
) -> None:
    """Compute what queries mean over stored data.

    The rows come from the definition of the language itself, tick by tick and pair by pair: simple, not
    fast, and the measure for everything that runs. Needed are rows that are there as a whole: files, tables
    of a database, generators with `start` and `end`.

    FILE is an SQL file, a folder or - for standard input. QUERY is the name of a query: every argument that
    is no file, no folder and does not end in .sql. Without one, all queries are evaluated.

    \b
    Examples:
      plait evaluate examples/traffic.sql
      plait evaluate examples/traffic.sql left_turns --format csv --output left_turns.csv
      plait evaluate examples/airline.sql gate_17 --as-of-watermark --limit 5
    """
    output_format = format_or_json(context, output_format, as_json)
    files, names = files_and_queries(arguments, "evaluate")
    with open_session(files, output) as session:
        chosen = [session.query(name).name for name in names] or list(session.queries)
        if output_format == "csv" and len(chosen) != 1:
            raise UserError(
                "one-query",
                f"CSV holds the rows of one query, and there are {len(chosen):,}",
                hint="name one, or use --json",
            )
        results = {name: _evaluated(session, name, as_of_watermark) for name in chosen}
    rows_limit = (ROWS_SHOWN if output_format == "table" else None) if limit is None else limit or None
    match output_format:
        case "table":
            write_result("\n\n".join(_table(n, r, rows_limit, output) for n, r in results.items()), output)
        case "csv":
            (rows,) = results.values()
            write_result(rows.to_csv(rows_limit), output)
            for line in (*_set_aside(rows), *_failed(rows)):  # CSV has no place for it
                click.echo(line, err=True)
        case "json":
            write_json(
                {"queries": [{"name": n, **r.to_json(rows_limit)} for n, r in results.items()]}, output
            )


def files_and_queries(
    arguments: tuple[str, ...], command_name: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Every argument that is no file, no folder and does not end in .sql is the name of a query."""
    files = tuple(a for a in arguments if _is_file(a))
    if not files:
        raise UserError(
            "no-files",
            f"there is no file or folder {arguments[0]}",
            hint=f"plait {command_name} FILE [QUERY]",
        )
    return files, tuple(a for a in arguments if a not in files)


def _is_file(argument: str) -> bool:
    try:
        return argument == STANDARD or argument.endswith(".sql") or Path(argument).exists()
    except OSError:  # too long for any file
        return False


def _evaluated(session: Session, name: str, as_of_watermark: bool) -> EvaluatedRows:
    with progress(f"evaluating {name}"):
        return session.evaluate(name, as_of_watermark=as_of_watermark)


def _table(name: str, rows: EvaluatedRows, limit: int | None, output: str | None) -> str:
    lines = [f"{name}: {counted(len(rows), 'row')}", *_set_aside(rows), *_failed(rows)]
    if rows.rows:
        lines.append(rows.to_text(limit, terminal_width(output)))
    return "\n".join(lines)


def _failed(rows: EvaluatedRows) -> list[str]:
    return [
        f"NULL, as there is no such value: {expression} on {counted(count, 'row')} of {stream}"
        for (stream, expression), count in rows.failed.items()
    ]


def _set_aside(rows: EvaluatedRows) -> list[str]:
    return [
        f"set aside: {counted(count, 'row')} of {stream} without a usable event time"
        for stream, count in rows.bad_records.items()
        if count
    ]
