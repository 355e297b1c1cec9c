"""Whatever is put together from parts of queries is bound, or refused with a place: never an illegal plan."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from plait.errors import ErrorReport, UserError
from plait.language import load_text

CATALOG = """
CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM r (k STRING, w DOUBLE, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE TABLE t (k STRING, name STRING);
CREATE CONTINUOUS QUERY ticks AS SELECT k, count(*) AS n FROM s [RANGE 2 MINUTES SLIDE 1 MINUTE] GROUP BY k;
CREATE CONTINUOUS QUERY pairs AS SELECT s.k, v, w FROM s [RANGE 1 MINUTE], r [RANGE 1 MINUTE] WHERE s.k = r.k;
CREATE CONTINUOUS QUERY counted AS SELECT k, count(*) AS n FROM s [ROWS 10 SLIDE 5] GROUP BY k;
"""

WINDOWS = st.sampled_from(
    ["", "", "[RANGE 5 MINUTES]", "[RANGE 1 MINUTE]", "[RANGE 5 MINUTES SLIDE 1 MINUTE]", "[ROWS 10 SLIDE 5]"]
)
SUBQUERIES = [
    "(SELECT * FROM s WHERE v > 1)",
    "(SELECT k, max(v) AS n FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY k)",
    "(SELECT k FROM s [RANGE 1 MINUTE])",
    "(SELECT k FROM t)",
    "(SELECT k FROM s UNION ALL SELECT k FROM r)",
]
SOURCES = st.sampled_from(["s", "r", "t", "ticks", "pairs", "counted", *SUBQUERIES])
JOINS = st.sampled_from([", ", " CROSS JOIN ", " JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN "])
EXPRESSIONS = st.sampled_from(
    [
        "a.k",
        "k",
        "b.k",
        "v",
        "n",
        "w + 1",
        "upper(a.k)",
        "count(*)",
        "max(n)",
        "sum(v)",
        "window_end",
        "a.window_start",
    ]
)
CONDITIONS = st.sampled_from(
    ["a.k = b.k", "a.k > 'x'", "window_end > '2024-01-01'", "count(*) > 1", "true", "v > 1"]
)
LISTS = st.lists(EXPRESSIONS, min_size=1, max_size=3)


@st.composite
def selects(draw: st.DrawFn) -> str:
    sources = draw(st.lists(SOURCES, min_size=1, max_size=3))
    text = f"{sources[0]} a {draw(WINDOWS)}"
    for name, source in zip("bc", sources[1:], strict=False):
        join = draw(JOINS)
        condition = f" ON {draw(CONDITIONS)}" if "JOIN" in join and "CROSS" not in join else ""
        text += f"{join}{source} {name} {draw(WINDOWS)}{condition}"
    outputs = ", ".join(f"{expression} AS o{i}" for i, expression in enumerate(draw(LISTS)))
    text = f"SELECT {outputs} FROM {text}"
    if draw(st.booleans()):
        text += f" WHERE {draw(CONDITIONS)}"
    if draw(st.booleans()):
        text += f" GROUP BY {', '.join(draw(LISTS))}"
        if draw(st.booleans()):
            text += f" HAVING {draw(CONDITIONS)}"
    if draw(st.booleans()):
        text += f" ORDER BY {draw(EXPRESSIONS)} DESC LIMIT 3"
    return text


@settings(max_examples=150, deadline=None)
@given(select=selects())
def test_a_query_is_bound_or_refused_with_a_place(select: str) -> None:
    try:
        workload = load_text(f"{CATALOG} CREATE CONTINUOUS QUERY q AS {select};")
    except ErrorReport as report:
        for error in report.errors:
            assert isinstance(error, UserError), error.render()
            assert error.span is not None
            assert CATALOG.count("\n") <= error.span.source.position(error.span.start)[0]
            assert error.render()
    else:
        query = workload.query("q")
        assert len(query.columns) == len(query.plan.types) == len(set(query.columns))
