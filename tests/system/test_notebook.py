"""The example notebook runs from top to bottom in a real kernel, and shows what it says."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of theirs, when they are loaded
    import nbformat
    from nbclient import NotebookClient

read_notebook: Any = nbformat.read  # it has no types

EXAMPLES = Path(__file__).parents[2] / "examples"


def shown(cell: Any, kind: str) -> str:
    """The last that a cell shows, as text of that kind."""
    data = [output.data for output in cell.outputs if "data" in output]
    return str(data[-1][kind])


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = read_notebook(EXAMPLES / "auction.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=180, resources={"metadata": {"path": str(EXAMPLES)}})
    client.execute(env={**os.environ, "TMPDIR": str(tmp_path)})
    opened, plan, explained, watched, added, queries, rows, counts, relation, ended, _ = (
        cell for cell in notebook.cells if cell.cell_type == "code"
    )
    assert "<td" in shown(opened, "text/html")
    assert shown(plan, "text/html").startswith("<svg")
    assert "<svg" in shown(explained, "text/html")
    assert "hot_items is computed in DuckDB" in shown(explained, "text/html")
    assert len(watched.outputs) == 1, "the table is shown anew in one place"
    assert ">bids_in_euros</td>" in shown(watched, "text/html")
    assert ">dear_bids</td>" in shown(added, "text/html")
    assert ">dear_bids</td>" in shown(queries, "text/html")
    assert "price_eur" in shown(rows, "text/html")
    assert "auction" in shown(counts, "text/plain")
    assert "highest" in shown(relation, "text/plain")
    assert shown(ended, "text/html").startswith("<p>ended")
    assert not list((tmp_path).glob("*/results/**/_draft*"))
