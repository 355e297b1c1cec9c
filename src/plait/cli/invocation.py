"""What all commands share: the files they read, `--json`, how errors, progress and tables are shown.

Results go to standard output; errors, notices and progress to standard error. Colour and progress appear on
terminals only, and colour not where NO_COLOR is set. Each of the three standard streams may be closed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from plait.catalog import Secret
from plait.cli.files import check_overwrites_nothing_read, write_atomically
from plait.errors import ExternalError, PlaitError, Source, UserError

if TYPE_CHECKING:
    from plait.api import Session
    from plait.catalog import Catalog
    from plait.notices import Notice

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

STANDARD = "-"  # standard input where a file is read, standard output where one is written


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


class OneOf(click.ParamType[str]):
    """One of some names, completed as such. Whether it is one of them is asked where it is used."""

    name = "name"

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


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
    def standard_output(
        _context: click.Context, _parameter: click.Parameter, value: str | None
    ) -> str | None:
        return None if value == STANDARD else value

    return click.option(
        "--output",
        "-o",
        type=FileName(),
        callback=standard_output,
        help="Write to this file; - is standard output, as without it.",
    )(function)


def folder_option(name: str, default: Path, meaning: str) -> Callable[[Decorated], Decorated]:
    """`--state` or `--results`, of which a run and its readers have the same default."""
    return click.option(
        name, type=FileName(), default=str(default), show_default=True, metavar="DIR", help=meaning
    )


def is_given(context: click.Context, parameter: str) -> bool:
    """Whether an option was written, rather than left at its default."""
    return context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE


def format_or_json(context: click.Context, output_format: str, as_json: bool) -> str:
    """What `--format` says, of which `--json` is another way to say `json`."""
    if not as_json:
        context.ensure_object(Invocation).json = output_format == "json"
        return output_format
    if is_given(context, "output_format") and output_format != "json":
        raise UserError(
            "usage", f"--json is --format json, and --format {output_format} is given too", hint="give one"
        )
    return "json"


def read_texts(files: tuple[str, ...]) -> list[tuple[Path, Source]]:
    """The texts of files, each with the folder that its paths start from."""
    from plait.api import sql_files
    from plait.language.limits import read_source

    texts: list[tuple[Path, Source]] = []
    for file in files:
        for each in sql_files(standard_input() if file == STANDARD else file):
            if isinstance(each, Source):
                texts.append((Path.cwd(), each))
            else:
                texts.append((each.absolute().parent, read_source(each)))
    return texts


def open_session(files: tuple[str, ...], output: str | None = None) -> Session:
    """What the files declare. Refuses an output that would overwrite one of them, or the data they name."""
    from plait import api

    if files.count(STANDARD) > 1:
        raise UserError("standard-input", "`-` (standard input) can be read once only", hint="give it once")
    with progress("reading"):
        origins = [standard_input() if file == STANDARD else Path(file) for file in files]
        paths = [each for origin in origins for each in api.sql_files(origin) if isinstance(each, Path)]
        check_overwrites_nothing_read(output, paths)
        session = api.open(origins)
        check_overwrites_nothing_read(output, _stored_data(session.workload.catalog))
    return session


def standard_input() -> Source:
    from plait.language.limits import MAX_SOURCE_BYTES

    if sys.stdin is None:
        raise UserError("standard-input", "standard input is closed", hint="name a file instead of -")
    try:
        # One byte more than is allowed, so that too much is noticed and no more is waited for.
        text = sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            "source-encoding", f"standard input is not a UTF-8 text: byte {error.start}"
        ) from None
    return Source("<stdin>", text)


def _stored_data(catalog: Catalog) -> Iterator[Path]:
    for relation in (*catalog.streams.values(), *catalog.tables.values()):
        path = relation.options.get("path")
        if path is not None:
            yield Path(path.reveal() if isinstance(path, Secret) else str(path))


def write_result(text: str, output: str | None) -> None:
    """To standard output, or to a file that is there completely or not at all."""
    if output is not None:
        write_atomically(Path(output), text if text.endswith("\n") else text + "\n")
        click.echo(f"wrote {output}", err=True)
    elif sys.stdout is None:
        raise ExternalError("output", "standard output is closed", hint="--output FILE writes to a file")
    else:
        click.echo(text, nl=not text.endswith("\n"))


def terminal_width(output: str | None) -> int | None:
    """How wide a table may be: as the terminal, or as it likes in a file or pipe."""
    on_terminal = output is None and is_terminal(sys.stdout)
    return shutil.get_terminal_size().columns if on_terminal else None


def is_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()


def notify(notices: Iterable[Notice]) -> None:
    for notice in notices:
        click.echo(notice.render(), err=True)


@contextmanager
def interrupted_by_term() -> Iterator[None]:
    """SIGTERM ends what goes on as Ctrl-C does: what was begun is put away."""

    def on_signal(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def say_step(step: str) -> None:
    """What a long command is doing now."""
    click.echo(f"{step} …", err=True)


def write_json(document: object, output: str | None = None) -> None:
    write_result(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False), output)


def show_error(error: PlaitError, *, as_json: bool) -> int:
    """Show the error where its reader looks for it; returns the exit code."""
    if as_json and sys.stdout is not None:
        click.echo(json.dumps(error.to_json(), indent=2, ensure_ascii=False))
    elif is_terminal(sys.stderr) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        click.echo("\n".join(_coloured(line) for line in error.render().splitlines()), err=True)
    else:
        click.echo(error.render(), err=True)
    return error.exit_code


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
def progress(what: str, *, takes_long: bool = False) -> Iterator[None]:
    """Say on a terminal what is going on, until it is done; in a log, that it takes long."""
    if not is_terminal(sys.stderr):
        if takes_long:
            click.echo(f"{what} …", err=True)
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield
