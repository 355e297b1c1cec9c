"""From a deployment to its diagram: what is read, sent, shared, refused."""

from __future__ import annotations

import pytest

import plait
from plait.picture.deployed import diagram_of
from plait.picture.diagram import Box, BoxKind, Diagram, Refusal

SITES = """
CREATE SITE atlanta WITH (cores = 4);
CREATE SITE newyork WITH (cores = 0.5);
CREATE STREAM flights (num INT, dest STRING, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (rate = 10, row_bytes = 50, distinct.num = 10, site = 'atlanta');
CREATE TABLE airports (code STRING, city STRING) WITH (rows = 10, row_bytes = 20, site = 'atlanta');
"""


def diagram(queries: str, catalog: str = SITES) -> Diagram:
    plan = plait.open_text(catalog + queries).plan()
    return diagram_of(plan.deployment, plan.report.planner)


def boxes(diagram: Diagram, kind: BoxKind) -> list[Box]:
    return [box for box in diagram.boxes if box.kind is kind]


def test_a_source_is_one_box_and_queries_stand_at_their_site() -> None:
    drawn = diagram(
        "CREATE CONTINUOUS QUERY q AT atlanta INTO 'out' AS SELECT num FROM flights WHERE num = 1;"
    )
    (stream,) = boxes(drawn, BoxKind.STREAM)
    assert (stream.title, stream.lines, stream.site) == ("flights", ("10 rows/s",), "atlanta")
    (query,) = boxes(drawn, BoxKind.QUERY)
    assert (query.title, query.site) == ("q", "atlanta")
    assert query.lines == ("into out",), "not where this machine has it"
    assert not boxes(drawn, BoxKind.FLOW)
    assert [site.name for site in drawn.sites] == ["atlanta", "newyork"]
    assert not any(box.shared for box in drawn.boxes)


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("WITH (sink = 'console')", "into console"),
        ("INTO 'out/q' WITH (sink = 'json')", "into q"),
        ("WITH (sink = 'spark', format = 'kafka', option.topic = 'x')", "into spark kafka"),
    ],
)
def test_a_query_says_where_its_rows_go(head: str, line: str) -> None:
    drawn = diagram(f"CREATE CONTINUOUS QUERY q {head} AS SELECT num FROM flights;")
    (query,) = boxes(drawn, BoxKind.QUERY)
    assert query.lines == (line,)


def test_a_stream_is_sent_once_and_read_there_by_many() -> None:
    queries = "".join(
        f"CREATE CONTINUOUS QUERY q{number} AT newyork AS SELECT num, dest FROM flights;"
        for number in range(3)
    )
    drawn = diagram(queries)
    (flow,) = boxes(drawn, BoxKind.FLOW)
    assert (flow.title, flow.site) == ("from atlanta", "newyork")
    assert flow.lines[0].endswith("B/s")
    assert flow.queries == {"q0", "q1", "q2"}
    readers = {target for source, target in drawn.arrows if source == flow.id}
    assert readers == {"query q0", "query q1", "query q2"}


def test_shared_operators_say_for_whom() -> None:
    drawn = diagram(
        """
        CREATE CONTINUOUS QUERY a AT atlanta AS
          SELECT f.num, p.city FROM flights f, airports p WHERE f.dest = p.code AND f.num = 7;
        CREATE CONTINUOUS QUERY b AT atlanta AS
          SELECT x.num, y.city FROM airports y JOIN flights x ON y.code = x.dest WHERE 7 = x.num;
        CREATE CONTINUOUS QUERY c AT atlanta AS SELECT num FROM flights WHERE num = 8;
        """
    )
    shared = {box.title: box for box in drawn.boxes if box.shared}
    assert shared["table join"].queries == {"a", "b"}
    assert "for a, b" in shared["table join"].tooltip
    assert shared["table join"].lines[0] in ("dest = code", "code = dest")
    assert [box.title for box in boxes(drawn, BoxKind.TABLE)] == ["airports"]
    answers = {source for source, target in drawn.arrows if target in ("query a", "query b")}
    assert len(answers) == 1, "both take their rows from one operator"


def test_refused_queries_are_listed_with_their_reason() -> None:
    drawn = diagram(
        "CREATE CONTINUOUS QUERY big AS SELECT num FROM fast WHERE num = 1;",
        SITES
        + """CREATE STREAM fast (num INT, at TIMESTAMP, WATERMARK FOR at AS at)
               WITH (rate = 1000000000, site = 'newyork');""",
    )
    (refusal,) = drawn.refusals
    assert isinstance(refusal, Refusal)
    assert refusal.query == "big"
    assert "newyork" in refusal.reason or "atlanta" in refusal.reason
    assert not boxes(drawn, BoxKind.QUERY)


def test_one_site_has_no_frame() -> None:
    drawn = diagram(
        "CREATE CONTINUOUS QUERY q AS SELECT x FROM s;",
        "CREATE STREAM s (x INT, at TIMESTAMP, WATERMARK FOR at AS at) WITH (rate = 1);",
    )
    assert drawn.sites == ()
    assert drawn.title == "1 query planned by plait"
