"""`plait run`: runs the queries on Spark, shows what they do, and stops at a batch boundary when asked to."""

from __future__ import annotations

import gc
import math
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from threading import Event
from time import monotonic, sleep
from types import FrameType

import click

from plait.api import Running
from plait.cli.invocation import (
    files_argument,
    folder_option,
    format_or_json,
    interrupted_by_term,
    is_terminal,
    json_option,
    open_session,
    progress,
    show_error,
    terminal_width,
    write_json,
    write_result,
)
from plait.cli.quantities import DURATION_S
from plait.cli.running_options import engines_option, planner_option
from plait.deployment.lowering import Engines
from plait.errors import PlaitError
from plait.planners import DEFAULT_PLANNER
from plait.runtime import DEFAULT_RESULTS, DEFAULT_STATE, MOST_ROWS
from plait.runtime.progress import line, live_table, summary_json, summary_text
from plait.runtime.snapshot import RunProgress

WATCH_SECONDS = 0.1
LIVE_SECONDS = 0.5
LINE_SECONDS = 5.0
STOPPED_AT_ONCE = 130  # 128 + SIGINT, as shells report it


@click.command("run")
@files_argument
@planner_option
@engines_option
@folder_option("--results", DEFAULT_RESULTS, "Where results go.")
@folder_option("--state", DEFAULT_STATE, "What a later run goes on from.")
@click.option(
    "--trigger",
    type=DURATION_S,
    default="1 second",
    show_default=True,
    metavar="TIME",
    help="The least time between micro-batches of a query.",
)
@click.option(
    "--retain",
    metavar="LIMIT",
    help="Remove results that are older, or too much: 7d, 10GB, or both. Queries may say it themselves.",
)
@click.option(
    "--compact", metavar="TIME", help="Merge small files of results when they are as old, such as 10min."
)
@click.option(
    "--merge/--no-merge",
    default=True,
    show_default=True,
    help="Compute together what was added one by one.",
)
@click.option("--available-now", is_flag=True, help="Process all data that is there, and end.")
@click.option("--drain", is_flag=True, help="At the end, count the streams as ended: closes every window.")
@click.option(
    "--for", "for_seconds", type=DURATION_S, metavar="TIME", help="End after that time, such as 60s."
)
@click.option(
    "--most-rows",
    type=click.IntRange(min=1),
    default=MOST_ROWS,
    show_default=True,
    metavar="N",
    help="What a micro-batch may give at once; a query that gives more is stopped.",
)
@click.option("--master", metavar="URL", help="The Spark master; this machine unless given.")
@click.option("--log", is_flag=True, help="Show what Spark logs.")
@click.option("--quiet", "-q", is_flag=True, help="Show neither progress nor the summary.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the summary is written.",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    files: tuple[str, ...],
    planner: str,
    engines: str,
    results: str,
    state: str,
    trigger: float,
    retain: str | None,
    compact: str | None,
    merge: bool,
    available_now: bool,
    drain: bool,
    for_seconds: float | None,
    most_rows: int,
    master: str | None,
    log: bool,
    quiet: bool,
    output_format: str,
    as_json: bool,
) -> int:
    """Run the queries on Spark.

    Runs until Ctrl-C, which stops at the end of the micro-batches that are going on; a second one stops at
    once. Either way the next run with the same state folder goes on without gap or duplicate. Every row is in
    the results exactly once, whatever crashes.

    Others go on if a query fails by itself; the exit code says that one did.

    \b
    Examples:
      plait run queries.sql
      plait run queries.sql --available-now --drain
      plait run queries.sql --for 10min --results /data/results --state /data/state
      plait run queries.sql --master spark://host:7077
    """
    output_format = format_or_json(context, output_format, as_json)
    with open_session(files) as session:
        with interrupted_by_term(), nullcontext() if quiet else progress("starting Spark", takes_long=True):
            running = session.run(
                planner,
                engines=engines,
                state=state,
                results=results,
                available_now=available_now,
                drain=drain,
                for_seconds=for_seconds,
                trigger_seconds=trigger,
                most_rows=most_rows,
                retain=retain,
                compact=compact,
                merge=merge,
                master=master,
                log=log,
            )
        if not quiet and running.merged_at_start.queries:
            click.echo(running.merged_at_start.headline, err=True)
        # Plans are there until the end. Thousands of them take Python's collector longer than a batch takes.
        gc.freeze()
        was_stopped = _watch(running, _shown(quiet))
        last, error = running.progress(), running.error
    if output_format == "json":
        errors = [] if error is None else error.to_json()["errors"]
        write_json({**summary_json(last), "stopped": was_stopped, "errors": errors})
    elif not quiet:
        write_result(summary_text(last, terminal_width(None)), None)
        if was_stopped or not drain:
            click.echo(f"\n{_going_on(files, planner, engines, state, results)}")
    if error is None:
        return 0
    return error.exit_code if output_format == "json" else show_error(error, as_json=False)


@dataclass(frozen=True)
class Display:
    """What shows progress, and how often it does."""

    seconds: float
    show: Callable[[RunProgress], None]


def _shown(quiet: bool) -> AbstractContextManager[Display]:
    if quiet:
        return nullcontext(Display(math.inf, lambda _: None))
    if is_terminal(sys.stderr):
        return _live()
    return nullcontext(Display(LINE_SECONDS, _Lines()))


class _Lines:
    """A line each time; and why a query failed, as soon as it has: a run may have no end."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, now: RunProgress) -> None:
        click.echo(line(now), err=True)
        for error in dict.fromkeys(query.error.render() for query in now.failed if query.error is not None):
            if error not in self._told:
                click.echo(error, err=True)
                self._told.add(error)


@contextmanager
def _live() -> Iterator[Display]:
    from rich.console import Console
    from rich.live import Live

    # What is printed on the same terminal meanwhile appears above the table.
    with Live(
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=is_terminal(sys.stdout),
    ) as live:
        yield Display(LIVE_SECONDS, lambda now: live.update(live_table(now), refresh=True))


def _watch(running: Running, shown: AbstractContextManager[Display]) -> bool:
    """Show progress until the run ends; whether a signal asked for that."""
    with _stop_signals() as stop:
        with shown as display:
            due = monotonic() + display.seconds
            while not (running.has_ended or stop.is_set()):
                if monotonic() >= due:
                    display.show(running.progress())
                    due = monotonic() + display.seconds  # none is made up for after a pause
                sleep(WATCH_SECONDS)
        if not stop.is_set():
            return False
        click.echo("stopping when the batches that run are done; Ctrl-C again stops at once", err=True)
        with suppress(PlaitError):  # it is told with the summary
            running.stop()
        return True


@contextmanager
def _stop_signals() -> Iterator[Event]:
    """Set by the first Ctrl-C or SIGTERM. The second ends the process as it stands: the state allows that."""
    stop = Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            os.write(2, b"stopped at once: the next run goes on without gap or duplicate\n")
            os._exit(STOPPED_AT_ONCE)
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _going_on(files: tuple[str, ...], planner: str, engines: str, state: str, results: str) -> str:
    words = ["plait", "run", *files]
    for option, value, default in (
        ("--planner", planner, DEFAULT_PLANNER),
        ("--engines", engines, Engines.ANY),
        ("--state", state, DEFAULT_STATE),
        ("--results", results, DEFAULT_RESULTS),
    ):
        words += [option, value] if value != str(default) else []
    return (
        f"go on with   {shlex.join(words)}\nclose all    {shlex.join([*words, '--available-now', '--drain'])}"
    )
