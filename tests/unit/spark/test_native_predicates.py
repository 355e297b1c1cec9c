"""What Spark is told of a join's condition. That the rows are right then is tested on Spark."""

from __future__ import annotations

from tests.workloads.single_queries import result_of

from plait import language
from plait.deployment.lowering import fragment
from plait.deployment.stages import IntervalJoinStage, TickJoinStage
from plait.spark.stage_frames import _predicate

STREAMS = """
CREATE STREAM a (k INT, x INT, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE STREAM b (k INT, y INT, at TIMESTAMP, WATERMARK FOR at AS at);
"""
ONE_SIDED = "a.k = b.k AND a.x >= 3 AND b.y > 5 AND a.x < b.y"


def condition(select: str) -> str:
    """The condition of the query's join, as SQL."""
    workload = language.load_text(f"{STREAMS} CREATE CONTINUOUS QUERY q AS {select};")
    stages = fragment(result_of(workload.query("q")), workload.catalog).stages
    assert stages is not None
    (join,) = (s for s in stages.streaming if isinstance(s, IntervalJoinStage | TickJoinStage))
    return _predicate(join.output)[-1]


def test_comparisons_with_one_side_of_a_join_in_time_are_hidden() -> None:
    """Spark would take 3 for the event time up to which rows can be forgotten, and never give one."""
    written = condition(
        f"SELECT a.x, b.y FROM a [RANGE 3 SECONDS] FULL JOIN b [RANGE 10 SECONDS] ON {ONE_SIDED}"
    )
    terms = written.split(" AND ")
    assert len(terms) == 4
    assert [term for term in terms if "coalesce(" in term] == terms[1:3]
    assert "(l_t > " in terms[1]
    assert "(r_t > " in terms[2]


def test_at_ticks_nothing_has_to_be_hidden() -> None:
    written = condition(
        "SELECT a.k, count(*) AS n FROM a [RANGE 3 SECONDS] "
        f"FULL JOIN b [RANGE 3 SECONDS] ON {ONE_SIDED} GROUP BY a.k"
    )
    assert "coalesce(" not in written
