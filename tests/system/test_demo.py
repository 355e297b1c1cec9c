"""`plait demo`, as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest


@pytest.mark.spark
def test_demo(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "plait", "demo", "--output", "tour"]
    demo = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (demo.returncode, demo.stderr) == (0, "")
    assert "12 queries ran as Spark streaming queries over 960 rows of 5 streams" in demo.stdout
    assert "the rows of all 12 queries are equal" in demo.stdout
    ElementTree.fromstring((tmp_path / "tour" / "plan.svg").read_text())
    assert list((tmp_path / "tour" / "results" / "gate_17").glob("*.parquet"))
