"""Three kills of a run of all classes of queries: at a commit step, between two commits, and at a moment.

`make chaos` has all failpoints, all classes, and more moments.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.campaign import campaign
from tests.chaos.kills import AtFailpoint, AtMoment
from tests.differential.queries import KINDS
from tests.differential.workloads import random_workload


@pytest.mark.spark
def test_kills_leave_no_trace_in_the_results(tmp_path: Path) -> None:
    kills = (
        AtFailpoint("results-published", 4),
        AtMoment(9.5),
        AtFailpoint("database-committed", 2, leaves_jvm=True),
    )
    workload = random_workload(3, KINDS, cuts=4).of_parquet()
    report = campaign(workload, kills, tmp_path, planner="plait", undisturbed=False)
    assert not report.wrong, "\n\n".join(report.wrong)
    assert report.kills == len(kills), report.unmet
