"""What does not run on Spark does not wait for it: checking and planning load neither Spark nor Arrow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TRAFFIC = Path(__file__).parents[2] / "examples" / "traffic.sql"
HEAVY = ("pyspark", "pyarrow", "pandas", "duckdb", "numpy")


def test_planning_and_explaining_load_nothing_heavy() -> None:
    program = (
        "import sys, plait; session = plait.open(sys.argv[1]); session.check(); session.plan()\n"
        "session.explain(session.queries[0])\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    command = [sys.executable, "-c", program, str(TRAFFIC)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
