"""`plait demo`, on the Spark of the tests."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from plait.cli import run


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--output", "tour"]) == 0
    shown = capsys.readouterr().out
    assert "12 queries ran together on Spark over 960 rows of 5 streams" in shown
    assert "the rows of all 12 queries are equal" in shown
    ElementTree.fromstring((tmp_path / "tour" / "plan.svg").read_text())
    assert list((tmp_path / "tour" / "results").glob("*/0*.parquet"))
