"""The command line: which commands there are, and how every ending of a command becomes an exit code.

Commands are modules of this package, imported when they are called, so that `plait --help` answers at once.
What a command raises ends here: errors of ours are shown as they render themselves (as JSON on standard
output where `--json` was asked for); what the operating system refuses, a full disk for one, is an error from
outside; anything else is a bug of ours and says so. Where it happened is written to a file, without the
exceptions' messages, which may quote secrets; PLAIT_DEBUG=1 gives the whole traceback instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise

import click

from plait.cli.invocation import Invocation, show_error
from plait.errors import ExternalError, InternalError, PlaitError, UserError, closest

INTERRUPTED = 130  # 128 + SIGINT, as shells report it

# One line each for `plait --help`; the module of the same name holds the command. Once it is imported, one
# hides what Python calls by its name here: `list`.
COMMANDS = {
    "check": "Check declarations and queries, and say everything that is wrong with them.",
    "plan": "Plan all queries together, and show what is shared and what it costs.",
    "evaluate": "Compute what queries mean over stored data.",
    "explain": "Say how a query runs on Spark, and why so.",
    "run": "Run the queries on Spark.",
    "add": "Add the queries of a file to a running system.",
    "drop": "Drop queries of a running system.",
    "merge": "Let a running system compute together what came one by one.",
    "list": "List the queries of a running system.",
    "top": "Show how busy a running system is.",
    "stop": "Stop a running system.",
    "results": "Show the rows that a run has published.",
    "compact": "Merge small files of results, and remove old rows.",
    "generate": "Write made-up streams as files: the airline, the smart plugs, the auctions.",
    "demo": "A guided tour on example data.",
    "bench": "Measure Plait; every figure is written down with how it was made.",
    "completion": "Print the completion script of your shell.",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"plait.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`plait COMMAND --help` explains a command, with examples.",
)
@click.version_option(package_name="plait", message="plait %(version)s")
def plait() -> None:
    """Plait plans many continuous SQL queries together: what they have in common is computed once.

    Streams, tables, sites and queries are declared in SQL files. Start with

    \b
      plait demo                      a guided tour
      plait check queries.sql         is everything right?
      plait plan queries.sql          what runs where, what is shared
      plait evaluate queries.sql      the rows that the queries mean, over stored data
      plait run queries.sql           the rows as they come, on Spark
      plait results NAME              what a run has published
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    code = run(arguments)
    if "pyspark" in sys.modules:
        # Spark's threads keep objects alive that DuckDB then complains of, at length, on standard error.
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    invocation = Invocation()
    try:
        code = plait.main(arguments, prog_name="plait", standalone_mode=False, obj=invocation)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except PlaitError as error:
        return show_error(error, as_json=invocation.json)
    except click.UsageError as error:
        # Words that cannot be understood are not taken in: look at them as they are.
        words = sys.argv[1:] if arguments is None else arguments
        return show_error(_usage_error(error), as_json=invocation.json or _asks_for_json(words))
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone, as `plait … | head` does. Nothing is left to say, not even at exit.
        _give_up_output()
        return 1
    except OSError as error:
        if os.environ.get("PLAIT_DEBUG"):
            raise
        return _show_system_error(error, as_json=invocation.json)
    except Exception as error:  # the one place where a bug of ours becomes a message
        if os.environ.get("PLAIT_DEBUG"):
            raise
        return show_error(_internal_error(error), as_json=invocation.json)


def _show_system_error(error: OSError, *, as_json: bool) -> int:
    """The reason without the file's name, which may hold a secret. Standard output may be what failed."""
    outside = ExternalError("system", error.strerror or type(error).__name__)
    try:
        sys.stdout.flush()
        return show_error(outside, as_json=as_json)
    except OSError:
        _give_up_output()
        return show_error(outside, as_json=False)


def _give_up_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _asks_for_json(words: Sequence[str]) -> bool:
    return bool({"--json", "--format=json"} & set(words)) or ("--format", "json") in pairwise(words)


def _usage_error(error: click.UsageError) -> PlaitError:
    command = error.ctx.command_path if error.ctx else "plait"
    hint = f"`{command} --help` shows how it is used"
    if isinstance(error, click.NoSuchCommand):
        hint = "\n".join(filter(None, (closest(error.command_name, COMMANDS), hint)))
    return UserError("usage", error.format_message(), hint=hint)


def _internal_error(error: Exception) -> PlaitError:
    import tempfile

    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="plait-error-", suffix=".txt", delete=False
    ) as file:
        file.writelines(_places(error))
    return InternalError(
        "internal",
        type(error).__name__,
        detail=f"this is a bug in Plait, please report it with {file.name}",
        hint="PLAIT_DEBUG=1 shows all of it, values included",
    )


def _places(error: BaseException) -> Iterator[str]:
    """The traceback, innermost cause first, with the types of the exceptions but not their messages."""
    import traceback

    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from _places(before)
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__qualname__}\n\n"
