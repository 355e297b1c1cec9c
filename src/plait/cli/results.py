"""`plait results`: the rows that a run has published, also while it goes on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import sleep

import click
import pyarrow as pa
import pyarrow.parquet as pq
from click.shell_completion import CompletionItem

from plait.api import ROWS_SHOWN, ResultRows
from plait.cli.files import check_overwrites_nothing_read, written_atomically
from plait.cli.invocation import (
    FileName,
    folder_option,
    format_or_json,
    is_given,
    json_option,
    output_option,
    terminal_width,
    write_json,
    write_result,
)
from plait.errors import ExternalError, PlaitError, UserError
from plait.quantity_text import counted
from plait.runtime import DEFAULT_STATE
from plait.runtime.arrow_rows import ArrowRows, json_lines
from plait.runtime.outlets import Outlet, find, recorded
from plait.runtime.results import batches, follow, shared_batches
from plait.table_text import csv_text

FORMATS = ("table", "csv", "json", "parquet")
POLL_SECONDS = 0.3
# Files that are written at the same time: a process may have a thousand open.
FILES_AT_ONCE = 200


class QueryName(click.ParamType[str]):
    """The name of a query of the state folder, completed as such."""

    name = "query"

    def shell_complete(
        self, ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            names = [
                outlet.query for outlet in recorded(Path(ctx.params.get("state") or DEFAULT_STATE)).values()
            ]
        except PlaitError:  # there is no state yet
            names = []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command("results")
@click.argument("query", required=False, type=QueryName())
@click.option("--all", "all_queries", is_flag=True, help="Of every query, as files in the folder --output.")
@folder_option("--state", DEFAULT_STATE, "The state folder of the run.")
@click.option(
    "--results", type=FileName(), metavar="DIR", help="Where the results are now, if they were moved."
)
@click.option(
    "--follow", "is_followed", is_flag=True, help="Go on with new rows as they are published, until Ctrl-C."
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How rows are written.",
)
@json_option
@output_option
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"At most this many rows; 0 is no limit. Tables show {ROWS_SHOWN} by default.",
)
@click.pass_context
def command(
    context: click.Context,
    query: str | None,
    all_queries: bool,
    state: str,
    results: str | None,
    is_followed: bool,
    output_format: str,
    as_json: bool,
    output: str | None,
    limit: int | None,
) -> None:
    """Show the rows that a run has published.

    Reads complete files only, and neither stops nor slows a run that is going on. Rows are in the order in
    which they were published. With --follow, JSON is one object a line.

    \b
    Examples:
      plait results gate_17
      plait results gate_17 --follow
      plait results gate_17 --format csv --output gate_17.csv
      plait results --all --output tables/
    """
    output_format = format_or_json(context, output_format, as_json)
    folder, moved = Path(state), None if results is None else Path(results)
    if all_queries:
        if query is not None or is_followed or limit is not None:
            raise UserError("usage", "--all goes with no query, --follow or --limit", hint="leave one out")
        if output is None or (is_given(context, "output_format") and output_format != "parquet"):
            raise UserError("usage", "--all writes Parquet files to a folder", hint="add --output DIR")
        _export_all(recorded(folder, moved).values(), Path(output))
        return
    if query is None:
        names = [outlet.query for outlet in recorded(folder, moved).values()]
        raise UserError("usage", "of which query?", hint=f"name one, or give --all: {', '.join(names)}")
    outlet = find(folder, query, moved)
    check_overwrites_nothing_read(output, [path for path in (folder, outlet.folder) if path is not None])
    if is_followed:
        _follow(outlet, output_format, output, limit or None)
    else:
        _show(outlet, output_format, output, limit)


def _show(outlet: Outlet, output_format: str, output: str | None, limit: int | None) -> None:
    rows_limit = (ROWS_SHOWN if output_format == "table" else None) if limit is None else limit or None
    match output_format:
        case "table":
            rows = ResultRows.of(outlet)
            lines = [f"{outlet.query}: {counted(len(rows), 'row')}"]
            if len(rows):
                lines.append(rows.to_text(rows_limit, terminal_width(output)))
            write_result("\n".join(lines), output)
        case "json":
            rows = ResultRows.of(outlet)
            write_json({"name": outlet.query, **rows.to_json(rows_limit)}, output)
        case "csv":
            _write_lines(_csv(outlet, _batches(outlet, rows_limit)), output)
        case "parquet":
            if output is None:
                raise UserError("usage", "Parquet is no text", hint="add --output FILE")
            _write_parquet(outlet, _batches(outlet, rows_limit), Path(output))
            click.echo(f"wrote {output}", err=True)


def _batches(outlet: Outlet, limit: int | None) -> Iterator[pa.Table]:
    return _cut((rows for _, rows in batches(outlet)), limit)


def _cut(tables: Iterable[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """The first rows of all; ends with the last of them, so that no more are waited for."""
    left = limit
    for rows in tables:
        yield rows if left is None else rows.slice(0, left)
        if left is not None:
            left -= rows.num_rows
            if left <= 0:
                return


def _follow(outlet: Outlet, output_format: str, output: str | None, limit: int | None) -> None:
    if output is not None or output_format == "parquet":
        raise UserError("usage", "--follow writes text to standard output", hint="add > FILE to keep it")
    coming = _cut(follow(outlet, partial(sleep, POLL_SECONDS)), limit)
    try:
        match output_format:
            case "table":
                _write_lines(map(partial(_table_text, outlet), coming), None)
            case "csv":
                _write_lines(_csv(outlet, coming), None)
            case "json":
                _write_lines((text for rows in coming for text in json_lines(rows)), None)
    except KeyboardInterrupt:
        return  # that is how following ends


def _table_text(outlet: Outlet, rows: pa.Table) -> str:
    return ResultRows.of(outlet, rows).to_text(None, terminal_width(None)) + "\n\n"


def _csv(outlet: Outlet, tables: Iterable[pa.Table]) -> Iterator[str]:
    yield csv_text([outlet.columns])
    for rows in tables:
        yield csv_text(ArrowRows(rows))


def _write_lines(texts: Iterable[str], output: str | None) -> None:
    """As they come: rows of years need not fit into memory."""
    if output is None:
        for text in texts:
            click.echo(text, nl=False)
        return
    with written_atomically(Path(output)) as file:
        file.writelines(text.encode() for text in texts)
    click.echo(f"wrote {output}", err=True)


def _export_all(outlets: Iterable[Outlet], folder: Path) -> None:
    """One file a query, with its columns also if it has no rows yet."""
    check_overwrites_nothing_read(str(folder / "_"), [o.folder for o in outlets if o.folder is not None])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExternalError("output", f"cannot make the folder {folder}: {error.strerror}") from None
    sharing: defaultdict[Path, list[Outlet]] = defaultdict(list)
    for outlet in outlets:
        if outlet.folder is None:
            click.echo(f"{outlet.query}: left out, its rows go to {outlet.destination}", err=True)
        elif outlet.is_shared:
            sharing[outlet.folder].append(outlet)
        else:
            _write_parquet(outlet, _batches(outlet, None), folder / f"{outlet.query}.parquet")
            click.echo(f"wrote {folder / outlet.query}.parquet", err=True)
    for members in sharing.values():
        for start in range(0, len(members), FILES_AT_ONCE):
            _export_shared(members[start : start + FILES_AT_ONCE], folder)


def _export_shared(outlets: Sequence[Outlet], folder: Path) -> None:
    """Queries whose rows are in the same files, which are read once for all of them."""
    with ExitStack() as opened:
        writers = {}
        for outlet in outlets:
            file = opened.enter_context(written_atomically(folder / f"{outlet.query}.parquet"))
            writers[outlet.query] = opened.enter_context(pq.ParquetWriter(file, outlet.schema))
        for outlet, rows in shared_batches(outlets):
            writers[outlet.query].write_table(rows)
    for outlet in outlets:
        click.echo(f"wrote {folder / outlet.query}.parquet", err=True)


def _write_parquet(outlet: Outlet, tables: Iterable[pa.Table], path: Path) -> None:
    with written_atomically(path) as file, pq.ParquetWriter(file, outlet.schema) as writer:
        for rows in tables:
            writer.write_table(rows)
