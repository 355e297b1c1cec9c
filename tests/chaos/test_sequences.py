"""Two random sequences of changes whose lives end by a kill in the middle of a change. The first adds queries
on Spark's operators, in one life; the second drops one in DuckDB, in two. `make chaos` has more of them, with
more lives, and with kills while a system starts.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.sequences import ENDS, sequence

KILLS = [end for end in ENDS if end != "stop"]


@pytest.mark.spark
@pytest.mark.parametrize(("seed", "lives"), [(2, 1), (6, 2)])
def test_changes_that_are_killed_leave_no_trace(seed: int, lives: int, tmp_path: Path) -> None:
    wrong = sequence(seed, tmp_path, lives=lives, ends=KILLS, killed_at_start=0.0)
    assert not wrong, "\n\n".join(wrong)
