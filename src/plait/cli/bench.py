"""`plait bench`: measure, and write down every figure with how it was made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from plait.benchmarks import BENCHMARKS, Report
from plait.cli.invocation import (
    STANDARD,
    FileName,
    Invocation,
    OneOf,
    interrupted_by_term,
    output_option,
    say_step,
    write_json,
    write_result,
)
from plait.errors import ExternalError, UserError, closest
from plait.picture.chart import chart_svg
from plait.quantity_text import number_text
from plait.table_text import table_text

# What a shell takes as "no": neither wrong input nor a failure.
DOES_NOT_HOLD = 1


def _json_file(context: click.Context, _: click.Parameter, value: str | None) -> str | None:
    context.ensure_object(Invocation).json = value == STANDARD or value in BENCHMARKS
    return value


@click.command("bench")
@click.argument("name", required=False, type=OneOf(BENCHMARKS))
@click.option("--all", "run_all", is_flag=True, help="Run every benchmark.")
@click.option("--quick", is_flag=True, help="Measure less, for a first look.")
@click.option("--charts", type=FileName(), metavar="DIR", help="Also draw the figures: DIR/NAME-CHART.svg.")
@click.option(
    "--json",
    "json_file",
    type=FileName(),
    is_flag=False,
    flag_value=STANDARD,
    is_eager=True,  # so that errors in other options are JSON too
    callback=_json_file,
    metavar="[FILE]",
    help="Write one JSON document to this file; without FILE, print it, and errors, on standard output.",
)
@output_option
def command(
    name: str | None,
    run_all: bool,
    quick: bool,
    charts: str | None,
    json_file: str | None,
    output: str | None,
) -> int:
    """Measure Plait; every figure is written down with how it was made.

    Without NAME the benchmarks are listed. Each gives figures, with their units, and claims: what a paper, a
    peer or a goal says, what was measured here, and whether it holds.

    \b
    Examples:
      plait bench
      plait bench planning --quick
      plait bench planning --json planning.json
      plait bench sharing --charts pictures

    The exit code is 1 if a claim does not hold.
    """
    if name is None and json_file in BENCHMARKS:  # `--json NAME`: a flag before what is to be measured
        name, json_file = json_file, STANDARD
    as_json = json_file == STANDARD
    if name is not None and run_all:
        raise UserError("usage", f"--all runs every benchmark, and `{name}` is one", hint="give one of them")
    if name is None and not run_all:
        if json_file not in (None, STANDARD):
            raise UserError(
                "usage",
                f"`{json_file}` is no benchmark, and none is named to write there",
                hint=closest(json_file, BENCHMARKS) or "name one, or give --all",
            )
        _list(as_json, output)
        return 0
    if name is not None and name not in BENCHMARKS:
        raise UserError(
            "unknown-benchmark", f"there is no benchmark `{name}`", hint=closest(name, BENCHMARKS)
        )
    chosen = list(BENCHMARKS) if name is None else [name]
    # Before hours of measuring.
    if charts is not None:
        _make_folder(Path(charts))
    for file in (output, None if as_json else json_file):
        if file is not None and not Path(file).absolute().parent.is_dir():
            raise ExternalError("output", f"cannot write {file}: there is no folder {Path(file).parent}")
    with interrupted_by_term():
        reports = {each: BENCHMARKS[each].run(quick, say_step) for each in chosen}
    documents = [report.to_json() for report in reports.values()]
    if json_file is not None:
        document = documents[0] if name is not None else {"benchmarks": documents}
        write_json(document, output if as_json else json_file)
    if not as_json:
        write_result("\n\n".join(map(_report, documents)), output)
    if charts is not None:
        _write_charts(reports.values(), Path(charts))
    broken = [claim for document in documents for claim in document["claims"] if not claim["holds"]]
    for claim in broken:
        click.echo(f"does not hold: {claim['claim']}: {claim['why_not']}", err=True)
    return DOES_NOT_HOLD if broken else 0


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # a name with NUL in it is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise ExternalError("output", f"cannot make the folder {folder}: {reason}") from None


def _write_charts(reports: Iterable[Report], folder: Path) -> None:
    for report in reports:
        for name, chart in report.charts.items():
            write_result(chart_svg(chart), str(folder / f"{report.benchmark}-{name}.svg"))
        if not report.charts:
            click.echo(f"{report.benchmark} has no charts", err=True)


def _list(as_json: bool, output: str | None) -> None:
    known = [{"name": benchmark.name, "measures": benchmark.summary} for benchmark in BENCHMARKS.values()]
    if as_json:
        write_json({"benchmarks": known}, output)
    else:
        write_result(table_text(["benchmark", "measures"], [list(each.values()) for each in known]), output)


def _report(document: dict[str, Any]) -> str:
    figures = [[key, _shown(value)] for key, value in document["figures"].items()]
    parts = [document["benchmark"], table_text(["figure", "value"], figures, numeric={1})]
    if document["claims"]:
        rows = [
            [
                claim["claim"],
                f"{_shown(claim['against'])} ({claim['source']})",
                _shown(claim["ours"]),
                "yes" if claim["holds"] else f"no: {claim['why_not']}",
            ]
            for claim in document["claims"]
        ]
        parts.append(table_text(["claim", "against", "ours", "holds"], rows))
    return "\n\n".join(parts)


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else number_text(value)
