"""`plait bench`: measure, and write down every figure with how it was made."""

from __future__ import annotations

from typing import Any

import click

from plait.benchmarks import BENCHMARKS
from plait.cli.invocation import STANDARD_INPUT, FileName, say_step, write_json, write_result
from plait.errors import UserError, closest
from plait.quantity_text import number_text
from plait.table_text import table_text


@click.command("bench")
@click.argument("name", required=False)
@click.option("--all", "run_all", is_flag=True, help="Run every benchmark.")
@click.option("--quick", is_flag=True, help="Measure less, for a first look.")
@click.option(
    "--json",
    "json_file",
    type=FileName(),
    metavar="FILE",
    help="Write the document to this file; - prints it.",
)
def command(name: str | None, run_all: bool, quick: bool, json_file: str | None) -> None:
    """Measure Plait; every figure is written down with how it was made.

    Without NAME the benchmarks are listed. Each gives figures, with their units, and claims: what a paper, a
    peer or a goal says, what was measured here, and whether it holds.

    \b
    Examples:
      plait bench
      plait bench planning --quick
      plait bench planning --json planning.json
    """
    if name is None and not run_all:
        rows = [[benchmark.name, benchmark.summary] for benchmark in BENCHMARKS.values()]
        write_result(table_text(["benchmark", "measures"], rows), None)
        return
    if name is not None and name not in BENCHMARKS:
        raise UserError(
            "unknown-benchmark", f"there is no benchmark `{name}`", hint=closest(name, BENCHMARKS)
        )
    chosen = list(BENCHMARKS) if name is None else [name]
    documents = [BENCHMARKS[each].run(quick, say_step) for each in chosen]
    if json_file is not None:
        document = documents[0] if name is not None else {"benchmarks": documents}
        write_json(document, None if json_file == STANDARD_INPUT else json_file)
    if json_file != STANDARD_INPUT:
        write_result("\n\n".join(map(_report, documents)), None)


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
