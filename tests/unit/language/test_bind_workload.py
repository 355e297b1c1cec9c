"""Files to workloads: the catalog, DROP, names that meet, queries that read each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.language.bound import codes, statement_errors, workload

from plait.catalog import Link, Secret
from plait.errors import ErrorReport
from plait.language import load, load_text

STREAM = "CREATE STREAM {} (k STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 3 SECONDS)"


def test_a_stream_with_all_its_options() -> None:
    catalog = load_text(
        """
        CREATE SITE Atlanta WITH (cores = 4, memory = '16 GB', in_bandwidth = '80 Mbps', database = 'duckdb');
        CREATE STREAM Flights (num INT, speed FLOAT, at TIMESTAMP,
                               WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
          WITH (connector = 'files', path = 'data/flights', format = 'csv', header = true, site = 'atlanta',
                rate = '240/min', row_bytes = 100, distinct.num = 300, start = 'latest',
                idle_timeout = '5 minutes', max_future = '1 hour');
        CREATE TABLE planes (num INT) WITH (rows = 30);
        """,
        base=Path("/srv/airline"),
    ).catalog
    flights = catalog.stream("FLIGHTS")
    assert (flights.name, flights.event_time, flights.delay_us, flights.site) == (
        "Flights",
        "at",
        10_000_000,
        "Atlanta",
    )
    assert [(c.name, str(c.type), c.distinct, c.storage) for c in flights.columns] == [
        ("num", "INT", 300, ""),
        ("speed", "DOUBLE", None, "FLOAT"),
        ("at", "TIMESTAMP", None, ""),
    ]
    assert flights.options == {"path": "/srv/airline/data/flights", "format": "csv", "header": True}
    assert (flights.rate_rows_per_s, flights.row_bytes, flights.start) == (4.0, 100, "latest")
    assert (flights.idle_timeout_us, flights.max_future_us) == (300_000_000, 3_600_000_000)
    assert catalog.table("planes").rows == 30
    site = catalog.sites["atlanta"]
    assert (site.cores, site.memory_bytes, site.in_bytes_per_s, site.out_bytes_per_s) == (
        4,
        16 * 10**9,
        10**7,
        None,
    )


def test_links_work_both_ways_unless_the_way_back_is_declared() -> None:
    catalog = load_text("""
        CREATE SITE a; CREATE SITE b; CREATE SITE c;
        CREATE LINK a TO b WITH (bandwidth = '8 Mbps', latency = '20 ms');
        CREATE LINK b TO c WITH (latency = '1 ms'); CREATE LINK c TO b WITH (latency = '2 ms');
        """).catalog
    assert catalog.links == (
        Link("a", "b", 1e6, 20_000),
        Link("b", "a", 1e6, 20_000),
        Link("b", "c", None, 1_000),
        Link("c", "b", None, 2_000),
    )


def test_secrets_stay_hidden_when_their_path_is_located(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_TEST_FOLDER", "hidden")
    stream = (
        STREAM.format("s") + " WITH (connector = 'files', format = 'json', path = 'in/${PLAIT_TEST_FOLDER}')"
    )
    path = load_text(stream, base=Path("/srv")).catalog.stream("s").options["path"]
    assert isinstance(path, Secret)
    assert path.reveal() == "/srv/in/hidden"
    assert "hidden" not in repr(path) + str(path)


def test_files_are_read_together_and_paths_start_at_each(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    queries, streams = tmp_path / "queries.sql", tmp_path / "data" / "streams.sql"
    queries.write_text("CREATE CONTINUOUS QUERY q AT x INTO 'out' AS SELECT k FROM s; CREATE SITE x;")
    streams.write_text(STREAM.format("s") + " WITH (connector = 'files', format = 'csv', path = 'in');")
    loaded = load([queries, streams])
    query = loaded.query("Q")
    assert (query.name, query.site, query.columns) == ("q", "x", ("k",))
    assert query.sink.target == str(tmp_path / "out")
    assert loaded.catalog.stream("s").options["path"] == str(tmp_path / "data" / "in")


def test_errors_of_all_files_are_reported_together(tmp_path: Path) -> None:
    first, second = tmp_path / "a.sql", tmp_path / "b.sql"
    first.write_text(f"{STREAM.format('s')}; CREATE CONTINUOUS QUERY q AS SELECT nope FROM s;")
    second.write_text(
        "CREATE CONTINUOUS QUERY r AS SELECT k FRM s; CREATE CONTINUOUS QUERY z AS SELECT k FROM missing;"
    )
    with pytest.raises(ErrorReport) as caught:
        load([second, first, tmp_path / "c.sql"])
    found = caught.value.errors
    assert [error.code for error in found] == ["source-file", "unknown-column", "syntax", "unknown-relation"]


@pytest.mark.parametrize(
    ("statements", "code", "underlined"),
    [
        (STREAM.format("T") + ";", "duplicate", "T"),
        ("CREATE TABLE s (a INT);", "duplicate", "s"),
        ("CREATE CONTINUOUS QUERY r AS SELECT k FROM s;", "duplicate", "r"),
        ("CREATE SITE Atlanta;", "duplicate", "Atlanta"),
        (
            "CREATE LINK atlanta TO newyork; CREATE LINK ATLANTA TO newyork;",
            "duplicate",
            "CREATE LINK ATLANTA TO newyork",
        ),
        ("CREATE LINK atlanta TO Atlanta;", "link", "Atlanta"),
        ("CREATE LINK atlanta TO chicago;", "unknown-site", "chicago"),
        ("CREATE TABLE z (a INT) WITH (site = 'atlant');", "unknown-site", "'atlant'"),
        ("CREATE CONTINUOUS QUERY q AT atlantis AS SELECT k FROM s;", "unknown-site", "atlantis"),
        ("CREATE TABLE z (a INT) WITH (distinct.b = 3);", "unknown-column", "distinct.b"),
        ("DROP STREAM z;", "unknown-name", "z"),
        ("DROP STREAM t;", "wrong-kind", "t"),
        ("DROP CONTINUOUS QUERY s;", "wrong-kind", "s"),
        ("DROP LINK atlanta TO newyork;", "unknown-name", "atlanta"),
        ("DROP STREAM z; " + STREAM.format("z") + ";", "unknown-name", "z"),
        ("DROP TABLE t; CREATE CONTINUOUS QUERY q AS SELECT k FROM t;", "unknown-relation", "t"),
    ],
)
def test_names_that_do_not_fit(statements: str, code: str, underlined: str) -> None:
    assert codes(statement_errors(statements)) == [(code, underlined)]


def test_hints_name_the_first_place_and_the_closest_name() -> None:
    unknown, duplicate, dropped = statement_errors(
        "DROP SITE newyrk; CREATE TABLE r (a INT); DROP TABLE t; CREATE CONTINUOUS QUERY q AS SELECT k FROM t"
    )
    assert duplicate.detail.startswith("first declared at <sql>:5:")
    assert unknown.hint == "did you mean `newyork`?"
    assert dropped.detail.startswith("it was dropped at <sql>:8:")


def test_drop_takes_away_what_was_declared_before() -> None:
    loaded = workload(f"""
        DROP TABLE t; DROP TABLE IF EXISTS t; DROP SITE newyork; {STREAM.format("t")};
        CREATE CONTINUOUS QUERY a AS SELECT k FROM s; DROP CONTINUOUS QUERY a;
        CREATE CONTINUOUS QUERY a AS SELECT k FROM t;
        """)
    assert set(loaded.catalog.sites) == {"atlanta"}
    assert "t" in loaded.catalog.streams
    assert list(loaded.queries) == ["a"]


def test_queries_in_a_circle_are_reported_once() -> None:
    found = statement_errors("""
        CREATE CONTINUOUS QUERY a AS SELECT k FROM b; CREATE CONTINUOUS QUERY b AS SELECT k FROM c;
        CREATE CONTINUOUS QUERY c AS SELECT k FROM a; CREATE CONTINUOUS QUERY d AS SELECT k FROM a;
        CREATE CONTINUOUS QUERY e AS SELECT k FROM e;
        """)
    assert [(error.code, error.detail) for error in found] == [
        ("cycle", "`a` reads `b` reads `c` reads `a`"),
        ("cycle", "`e` reads `e`"),
    ]


def test_a_query_that_reads_a_broken_one_is_not_blamed() -> None:
    found = statement_errors("""
        CREATE CONTINUOUS QUERY a AS SELECT nope FROM s;
        CREATE CONTINUOUS QUERY b AS SELECT x FROM a; CREATE CONTINUOUS QUERY c AS SELECT x FROM unread;
        CREATE CONTINUOUS QUERY unread AS SELECT FROM s;
        """)
    assert [error.code for error in found] == ["unknown-column", "syntax"]


def test_long_chains_of_queries_are_refused() -> None:
    chain = "".join(f"CREATE CONTINUOUS QUERY q{n} AS SELECT k FROM q{n + 1};" for n in range(100))
    found = statement_errors(chain + "CREATE CONTINUOUS QUERY q100 AS SELECT k FROM s;")
    assert {error.code for error in found} == {"too-large"}


def test_joins_of_very_many_streams_are_refused() -> None:
    joined = ", ".join(f"s [RANGE 1 MINUTE] AS s{n}" for n in range(65))
    (error,) = statement_errors(f"CREATE CONTINUOUS QUERY q AS SELECT s1.k FROM {joined};")
    assert error.code == "too-large"
    assert "65" in error.message


def test_queries_are_bound_in_the_order_of_their_declaration() -> None:
    statements = "".join(
        f"CREATE CONTINUOUS QUERY q{n} AS SELECT k, max(v) AS m FROM s [RANGE {n + 1} MINUTES] GROUP BY k;"
        for n in range(50)
    )
    assert list(workload(statements).queries) == [f"q{n}" for n in range(50)]


def test_a_sink_is_a_plain_absolute_path() -> None:
    text = (
        "CREATE STREAM s (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 1 SECOND);"
        "CREATE CONTINUOUS QUERY q INTO 'out/q' AS SELECT k FROM s;"
    )
    sink = load_text(text, base=Path("/srv/work/../plants")).query("q").sink
    assert sink.target == "/srv/plants/out/q"
