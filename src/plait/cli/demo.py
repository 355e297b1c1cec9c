"""`plait demo`: check, plan and evaluate the airline example, and say what is to be seen."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import click

import plait
from plait.api import Plan, Session
from plait.cli.files import write_atomically
from plait.cli.invocation import FileName, progress, terminal_width
from plait.deployment.deployment import Deployment
from plait.deployment.explain import sharing
from plait.errors import InternalError
from plait.quantity_text import counted, number_text

PICTURE = "plait-demo.svg"
EVALUATED = ("gate_17", "gate_17_display", "bad_weather_ahead", "sales_by_destination")
ROWS_SHOWN = 5


@click.command("demo")
@click.option(
    "--output",
    "-o",
    type=FileName(),
    default=PICTURE,
    show_default=True,
    help="Where the picture goes.",
)
def command(output: str) -> None:
    """A guided tour on example data.

    Checks the queries of an airline, plans them together, draws the plan, and evaluates some of them over
    stored data. Takes a few seconds and writes nothing but the picture.

    \b
    Examples:
      plait demo
      plait demo --output /tmp/airline.svg
    """
    file = _examples() / "airline.sql"
    _say(
        "An airline has standing queries at its gates, in its terminals and in its back offices, over",
        "streams of flights, check-ins, baggage, weather and sales that come in at four sites. They are in",
        f"{file}",
    )
    session = _check(file)
    plan = _plan(session, file)
    _draw(plan, file, Path(output))
    _evaluate(session, file)
    _say(
        "",
        "Next: write your own file (docs/language.md), or look at the other examples:",
        *(f"  plait plan {path}" for path in sorted(file.parent.glob("*.sql")) if path != file),
    )


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


def _evaluate(session: Session, file: Path) -> None:
    _heading("4. What the queries mean", f"plait evaluate {file} {' '.join(EVALUATED)} --limit {ROWS_SHOWN}")
    for name in EVALUATED:
        with progress(f"evaluating {name}"):
            rows = session.evaluate(name)
        _say(f"{name}: {counted(len(rows), 'row')}")
        _say(rows.to_text(ROWS_SHOWN, terminal_width(None)), "")


def _heading(title: str, command_line: str) -> None:
    _say("", click.style(title, bold=True), click.style(f"$ {command_line}", dim=True), "")


def _say(*lines: str) -> None:
    click.echo("\n".join(lines))
