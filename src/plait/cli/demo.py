"""`plait demo`: check, plan, draw and run the airline example on Spark, and compare the rows with what the
queries mean."""

from __future__ import annotations

import shlex
import shutil
from collections import defaultdict
from pathlib import Path

import click

import plait
from plait.api import Plan, Running, Session
from plait.cli.files import write_atomically
from plait.cli.invocation import FileName, progress, terminal_width
from plait.deployment.deployment import Deployment
from plait.deployment.explain import sharing
from plait.errors import InternalError
from plait.quantity_text import counted, number_text

FOLDER = "plait-demo"
SHOWN = ("gate_17", "bad_weather_ahead", "sales_by_destination")
ROWS_SHOWN = 5


@click.command("demo")
@click.option(
    "--output",
    "-o",
    type=FileName(),
    default=FOLDER,
    show_default=True,
    help="The folder for the picture, the results and the state.",
)
def command(output: str) -> None:
    """A guided tour on example data.

    Checks the queries of an airline, plans them together, draws the plan, runs them on Spark over stored
    data, and compares every row with what the queries mean. Takes about a minute. What an earlier tour left
    in the folder is replaced.

    \b
    Examples:
      plait demo
      plait demo --output /tmp/airline
    """
    file = _examples() / "airline.sql"
    _say(
        "An airline has standing queries at its gates, in its terminals and in its back offices, over",
        "streams of flights, check-ins, baggage, weather and sales that come in at four sites. They are in",
        f"{file}",
    )
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    with _check(file) as session:
        plan = _plan(session, file)
        _draw(plan, file, folder / "plan.svg")
        running = _run(session, file, folder)
        _show_results(running, folder)
        _compare(session, running, file)
    _say(
        "",
        "Next: write your own file (docs/language.md), or run one of the other examples:",
        *(f"  {_command(path, folder)}" for path in _others(file)),
    )


def _command(file: Path, folder: Path) -> str:
    """Each with a state of its own, so that they can be run one after the other."""
    places = [f"--{what} {shlex.quote(str(folder / f'{file.stem}-{what}'))}" for what in ("state", "results")]
    return f"plait run {file} --available-now --drain {' '.join(places)}"


def _others(file: Path) -> list[Path]:
    return [path for path in sorted(file.parent.glob("*.sql")) if path != file]


def _examples() -> Path:
    """Beside the package in an installation, beside `src` in a clone."""
    package = Path(plait.__file__).parent
    for folder in (package / "examples", package.parents[1] / "examples"):
        if folder.is_dir():
            here = Path.cwd()
            return folder.relative_to(here) if folder.is_relative_to(here) else folder
    raise InternalError("no-examples", f"this installation has no examples beside {package}")


def _check(file: Path) -> Session:
    _heading("1. Is everything right?", f"plait check {file}")
    session = plait.open(file)
    _say(session.check().to_text(terminal_width(None)))
    return session


def _plan(session: Session, file: Path) -> Plan:
    _heading("2. Plan all queries together", f"plait plan {file} --compare")
    with progress("planning"):
        comparison = session.compare()
    _say(comparison.to_text(terminal_width(None)))
    plans = {plan.report.planner: plan for plan in comparison}
    deployment = plans["plait"].deployment
    shared = sharing(deployment)
    alone, together = (plans[name].deployment.cost.cores for name in ("independent", "plait"))
    _say(
        "",
        f"Alone, the queries take {number_text(alone)} cores; planned together, {number_text(together)}:",
        f"{counted(shared.shared_operators, 'operator')} of {shared.operators:,} serve several queries.",
    )
    for names in _same_streams(deployment):
        _say(
            f"{' and '.join(names)} are written in different words, ask for the same rows,",
            "and get them from the same operator.",
        )
    return plans["plait"]


def _same_streams(deployment: Deployment) -> list[list[str]]:
    """Queries that are answered by one and the same stream."""
    names: defaultdict[str | None, list[str]] = defaultdict(list)
    for query in deployment.admitted:
        names[query.stream].append(query.name)
    return [group for group in names.values() if len(group) > 1]


def _draw(plan: Plan, file: Path, output: Path) -> None:
    _heading("3. See it", f"plait plan {file} --format svg --output {output}")
    write_atomically(output, plan.to_svg())
    _say(
        f"The picture is in {output.absolute()}: open it in a browser.",
        "Green is what several queries share.",
    )


def _run(session: Session, file: Path, folder: Path) -> Running:
    state, results = folder / "state", folder / "results"
    _heading(
        "4. Run them on Spark",
        f"plait run {file} --available-now --drain --state {state} --results {results}",
    )
    for earlier in (state, results):
        shutil.rmtree(earlier, ignore_errors=True)
    with progress("starting Spark", takes_long=True):
        running = session.run(state=state, results=results, available_now=True, drain=True)
    with progress("running the queries", takes_long=True):
        running.wait()
    done = running.progress()
    rows = sum(stream.rows for stream in done.streams)
    _say(
        f"{counted(len(done.queries), 'query', 'queries')} ran together on Spark over"
        f" {counted(rows, 'row')} of {counted(len(done.streams), 'stream')} and gave"
        f" {counted(sum(query.rows for query in done.queries), 'row')}, in {done.seconds:.0f} s."
    )
    return running


def _show_results(running: Running, folder: Path) -> None:
    _heading("5. See the results", f"plait results {SHOWN[0]} --state {folder / 'state'}")
    for name in SHOWN:
        rows = running.results(name)
        _say(f"{name}: {counted(len(rows), 'row')}")
        _say(rows.to_text(ROWS_SHOWN, terminal_width(None)), "")
    _say(f"The rows are Parquet files in {folder / 'results'}; queries with the same columns share them.")


def _compare(session: Session, running: Running, file: Path) -> None:
    from plait.evaluator import difference  # loading the database takes a moment

    _heading("6. Are these the right rows?", f"plait evaluate {file}")
    wrong = []
    with progress("computing what the queries mean"):
        for name in session.queries:
            what = difference(running.results(name).rows, session.evaluate(name).rows)
            wrong += [f"query `{name}`: {what}"] if what else []
    if wrong:
        raise InternalError(
            "demo-rows", "rows of the run are not those of the definition", detail="\n".join(wrong)
        )
    _say(
        "The evaluator computes each query from its definition (docs/semantics.md), with none of the code",
        f"that ran it: the rows of all {counted(len(session.queries), 'query', 'queries')} are equal.",
    )


def _heading(title: str, command_line: str) -> None:
    _say("", click.style(title, bold=True), click.style(f"$ {command_line}", dim=True), "")


def _say(*lines: str) -> None:
    click.echo("\n".join(lines))
