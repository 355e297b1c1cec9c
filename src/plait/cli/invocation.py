"""What all commands share: the files they read, `--json`, how errors, progress and tables are shown.

Results go to standard output; errors, notices and progress to standard error. Colour and progress appear on
terminals only.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from plait.errors import ErrorReport, PlaitError, UserError

if TYPE_CHECKING:
    from plait.api import Session
    from plait.notices import Notice

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

STANDARD_INPUT = "-"


@dataclass
class Invocation:
    """One run of the command line; `json` says how it wants its errors."""

    json: bool = False


class FileName(click.ParamType[str]):
    """The name of a file or folder, completed as such. Whether it is there is asked where it is used."""

    name = "file"

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def _remember_json(context: click.Context, _: click.Parameter, value: bool) -> bool:
    invocation = context.find_object(Invocation)
    if value and invocation is not None:
        invocation.json = True
    return value


def files_argument(function: Decorated) -> Decorated:
    """`FILE…`: files, folders (all *.sql files in them), or `-` for standard input."""
    return click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FileName())(function)


def json_option(function: Decorated) -> Decorated:
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        is_eager=True,  # so that errors in other options are JSON too
        callback=_remember_json,
        help="Print one JSON document on standard output, errors included.",
    )(function)


def sample_option(function: Decorated) -> Decorated:
    return click.option(
        "--sample",
        is_flag=True,
        help="Estimate rates, sizes and numbers of distinct values from stored data.",
    )(function)


def output_option(function: Decorated) -> Decorated:
    return click.option(
        "--output", "-o", type=FileName(), help="Write to this file instead of the terminal."
    )(function)


def open_session(files: tuple[str, ...]) -> Session:
    from plait import api
    from plait.language.limits import MAX_SOURCE_BYTES

    if STANDARD_INPUT in files:
        if len(files) > 1:
            raise UserError(
                "standard-input", "`-` (standard input) cannot be combined with files", hint="give either"
            )
        try:
            # One byte more than is allowed, so that too much is noticed and no more is waited for.
            text = sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError(
                "source-encoding", f"standard input is not a UTF-8 text: byte {error.start}"
            ) from None
        with progress("reading"):
            return api.open_text(text, name="<stdin>")
    with progress("reading"):
        return api.open([Path(file) for file in files])


def write_result(text: str, output: str | None) -> None:
    """To standard output, or to a file that is there completely or not at all."""
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
        return
    from plait.cli.files import write_atomically

    write_atomically(Path(output), text if text.endswith("\n") else text + "\n")
    click.echo(f"wrote {output}", err=True)


def terminal_width(output: str | None) -> int | None:
    """How wide a table may be: as the terminal, or as it likes in a file or pipe."""
    on_terminal = output is None and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if on_terminal else None


def notify(notices: Iterable[Notice]) -> None:
    for notice in notices:
        click.echo(notice.render(), err=True)


def say_step(step: str) -> None:
    """What a long command is doing now."""
    click.echo(f"{step} …", err=True)


def write_json(document: object, output: str | None = None) -> None:
    write_result(json.dumps(document, indent=2, ensure_ascii=False), output)


def show_error(error: PlaitError, *, as_json: bool) -> int:
    """Show the error where its reader looks for it; returns the exit code."""
    if as_json:
        document = error.to_json() if isinstance(error, ErrorReport) else {"errors": [error.to_json()]}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    elif sys.stderr.isatty():
        click.echo("\n".join(_coloured(line) for line in error.render().splitlines()), err=True)
    else:
        click.echo(error.render(), err=True)
    return error.worst if isinstance(error, ErrorReport) else error.exit_code


def _coloured(line: str) -> str:
    head, bracket, rest = line.partition("[")
    if bracket and head in ("error", "unsupported", "infeasible", "external", "internal"):
        return click.style(head + bracket + rest.split("]", 1)[0] + "]", fg="red", bold=True) + click.style(
            rest.split("]", 1)[1], bold=True
        )
    if line.lstrip().startswith("hint:"):
        return click.style(line, fg="cyan")
    if line.lstrip(" |").startswith("^"):
        return click.style(line, fg="red")
    return line


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Say on a terminal what is going on, until it is done."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield
