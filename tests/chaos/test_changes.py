"""Changes that kill the system they are made to: each is there as a whole afterwards, or not at all, and
every query gives the rows of its definition from the moment on at which it was added.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.chaos.changes import ChangingSystem
from tests.differential.queries import KINDS, OVER_A_QUERY
from tests.differential.variants import on_spark, woven_workload
from tests.differential.workloads import random_workload

from plait.deployment.fragments import Way
from plait.errors import PlaitError

KINDS_HERE = [kind for kind in KINDS if kind != OVER_A_QUERY][::2]


@pytest.mark.spark
@pytest.mark.parametrize("seed", [5, pytest.param(6, marks=pytest.mark.slow)])
def test_a_change_is_there_as_a_whole_or_not_at_all(seed: int, tmp_path: Path) -> None:
    workload = random_workload(seed, KINDS_HERE, cuts=5)
    first = len(workload.queries) // 2
    names = [query.name for query in workload.queries]
    begun, more = names[:first], names[first:]
    living = ChangingSystem(workload, tmp_path, first)
    with living.running("change-prepared"):  # before it is written down
        living.arrive()
        with pytest.raises(PlaitError, match="ended before it answered"):
            living.add(more)
    with living.running("change-recorded"):  # when it was
        assert living.note_starts() == {*begun}
        living.arrive()
        with pytest.raises(PlaitError, match="ended before it answered"):
            living.add(more)
    living.killed_at_start("changes-settled")  # when one entry stands for all changes
    gone = [begun[0], more[0]]
    with living.running("change-recorded"):
        assert living.note_starts() == {*names}
        living.arrive()
        with pytest.raises(PlaitError, match="ended before it answered"):
            living.drop(*gone)
    with living.running():
        assert living.note_starts() == {*names} - {*gone}
        living.add([begun[0]])
        assert f"{begun[0]}#2" in living.note_starts()
        living.arrive()
        living.arrive()
    living.drain()
    staying = [name for name in names if name not in gone]
    assert not living.wrong([*staying, f"{begun[0]}#2"])
    assert not living.wrong(gone, dropped=True)
    assert any(us is not None for us in living.starts_us.values())


@pytest.mark.spark
@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_queries_that_are_merged_lose_and_repeat_nothing(seed: int, tmp_path: Path) -> None:
    """Killed before it is written down that they are handed over, and when it is, at a start; while both
    places compute, and when the old ones let them go."""
    workload = woven_workload(seed, cuts=5)
    families = [[r.query for r in each.results] for each in on_spark(workload) if each.way is Way.WOVEN]
    names = [name for family in families[:2] for name in family[:2]]
    queries = {query.name: query for query in workload.queries}
    workload = replace(workload, queries=tuple(queries[name] for name in [*names[::2], *names[1::2]]))
    living = ChangingSystem(workload, tmp_path, len(names[::2]), "spark")
    additions = len(names[1::2])
    with living.running(f"change-prepared:{additions + 1}"):  # a merge that is not written down
        living.arrive()
        for name in names[1::2]:
            living.add([name])
        assert living.note_starts() == {*names}
        with pytest.raises(PlaitError, match="ended before it answered"):
            living.system.merge()
    assert living.killed_at_start("change-recorded", for_seconds=60)  # by then it is
    for _ in range(4):
        living.put()
    assert living.killed_at_start("change-recorded", for_seconds=60)  # when the old ones let go
    living.drain()
    assert not living.wrong(names)
