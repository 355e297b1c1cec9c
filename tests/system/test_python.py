"""Plait in Python: sessions, comparisons, and what `plait` itself offers."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

import plait
from plait.errors import UserError

ROOT = Path(__file__).parents[2]
TRAFFIC = ROOT / "examples" / "traffic.sql"


def test_everything_promised_is_there() -> None:
    assert all(getattr(plait, name) is not None for name in plait.__all__)
    assert plait.__version__ == version("plait")
    with pytest.raises(AttributeError):
        plait.nonsense  # noqa: B018 (that it is looked up is what is tested)


def test_a_session_lets_go_of_its_data() -> None:
    with plait.open(TRAFFIC) as session:
        rows = session.evaluate("left_turns").rows
        data = session._data
    with pytest.raises(Exception, match="closed"):
        data.database.fetch("SELECT 1")
    session.close()  # once more does no harm
    assert session.evaluate("left_turns").rows == rows, "it can be used again"
    session.close()


def test_a_comparison_shows_itself() -> None:
    comparison = plait.open(TRAFFIC).compare()
    assert isinstance(comparison, plait.Comparison)
    assert [plan.report.planner for plan in comparison] == ["plait", "independent"]
    assert comparison[0].deployment.cost.cores < comparison[-1].deployment.cost.cores
    assert len(comparison[:1]) == 1
    lines = repr(comparison).splitlines()
    assert lines[0].split()[:3] == ["planner", "status", "admitted"]
    assert lines[2].split()[:5] == ["plait", "feasible", "4", "of", "4"]
    html = comparison._repr_html_()
    assert html.startswith("<table>")
    assert ">independent</td>" in html
    assert [plan["planner"] for plan in comparison.to_json()["plans"]] == ["plait", "independent"]


def test_nothing_to_open() -> None:
    with pytest.raises(UserError, match="no files are given"):
        plait.open([])
    with pytest.raises(UserError, match="a file's name is empty"):
        plait.open("")
