"""The plans of the examples, as text; `pytest --complete` writes them anew.

A changed plan is a change of behaviour. Below each stands what the default planner makes of it, so that a
change of sharing or placement shows too.
"""

from pathlib import Path

import pytest

from plait import language
from plait.plan.format import format_plans
from plait.planners import driver
from plait.rewrite import Merger, canonicalise
from plait.workload import Workload

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.sql"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_planned_as_before(example: Path, request: pytest.FixtureRequest) -> None:
    golden = Path(__file__).with_name(f"{example.stem}.txt")
    workload = language.load([example])
    written = f"{_logical(workload)}\n{_deployed(workload)}"
    if request.config.getoption("--complete"):
        golden.write_text(written)
    assert golden.read_text() == written, "run pytest --complete and look at the difference"


def _logical(workload: Workload) -> str:
    merger = Merger()
    return format_plans({query.name: canonicalise(query.plan, merger) for query in workload.queries.values()})


def _deployed(workload: Workload) -> str:
    """One line an operator, and one line a flow between sites."""
    deployment = driver.plan(workload).deployment
    lines = [
        f"{operator.kind} of {', '.join(operator.inputs)} gives {operator.output} at {operator.site}"
        for operator in deployment.operators
    ]
    lines += [f"{flow.stream} flows from {flow.source} to {flow.target}" for flow in deployment.flows]
    return "\n".join(lines) + "\n"
