"""Streams, tables and sinks as the catalog has them, by connector."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.catalog import Secret, Sink, SinkKind
from plait.errors import ErrorReport, PlaitError
from plait.language import load_text

STREAM = "CREATE STREAM s (k INT, at TIMESTAMP, WATERMARK FOR at AS at)"
FLIGHTS = "CREATE STREAM f ({}) WITH (connector = 'generator', generator = 'airline.flights'{});"
COLUMNS = "num INT, at TIMESTAMP, WATERMARK FOR at AS at"
HERE = Path("/srv/work")


def sink(head: str) -> Sink:
    text = f"{STREAM}; CREATE CONTINUOUS QUERY q {head} AS SELECT k FROM s;"
    return load_text(text, base=HERE).query("q").sink


def error_of(text: str) -> PlaitError:
    with pytest.raises(ErrorReport) as raised:
        load_text(text, base=HERE)
    (error,) = raised.value.errors
    return error


def marked(error: PlaitError) -> str:
    assert error.span is not None
    return error.span.source.text[error.span.start : error.span.end]


def test_files() -> None:
    text = f"{STREAM} WITH (connector = 'files', path = 'in', format = 'csv', files_per_batch = 2);"
    stream = load_text(text, base=HERE).catalog.stream("s")
    assert (stream.connector, stream.end) == ("files", None)
    assert dict(stream.options) == {"path": "/srv/work/in", "format": "csv", "files_per_batch": 2}


def test_what_spark_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_TEST_PASSWORD", "hush")
    text = f"""{STREAM} WITH (connector = 'spark', format = 'kafka', value_format = 'json', rate = 5,
      option.kafka.sasl.jaas.config = 'password=${{PLAIT_TEST_PASSWORD}}',
      option.startingOffsets = 'earliest', option.failOnDataLoss = FALSE, distinct.k = 3);"""
    workload = load_text(text, base=HERE)
    stream = workload.catalog.stream("s")
    assert stream.spark_options == {
        "kafka.sasl.jaas.config": "password=hush",
        "startingOffsets": "earliest",
        "failOnDataLoss": "FALSE",
    }
    assert {"format": "kafka", "value_format": "json"}.items() <= stream.options.items()
    assert isinstance(stream.options["option.kafka.sasl.jaas.config"], Secret)
    assert "rate" not in stream.options
    assert "distinct.k" not in stream.options
    assert "hush" not in repr(workload)


@pytest.mark.parametrize(
    ("path", "located"), [("in", "/srv/work/in"), ("/in", "/in"), ("s3a://bucket/in", "s3a://bucket/in")]
)
def test_a_path_that_spark_reads(path: str, located: str) -> None:
    text = f"{STREAM} WITH (connector = 'spark', format = 'delta', path = '{path}');"
    assert load_text(text, base=HERE).catalog.stream("s").options["path"] == located


def test_a_generator() -> None:
    options = ", seed = 7, start = '2026-01-31 12:00:00', end = '2026-01-31 13:00:00'"
    stream = load_text(FLIGHTS.format(COLUMNS, options)).catalog.stream("f")
    assert dict(stream.options) == {"generator": "airline.flights", "seed": 7}
    assert (stream.start, stream.end) == ("2026-01-31 12:00:00", "2026-01-31 13:00:00")
    assert stream.rate_rows_per_s == 5.0
    stream = load_text(FLIGHTS.format(COLUMNS, ", rate = '90/min'")).catalog.stream("f")
    assert (stream.rate_rows_per_s, stream.start, stream.end) == (1.5, "earliest", None)


@pytest.mark.parametrize(
    ("columns", "options", "code", "where", "hint"),
    [
        (COLUMNS, ", rate = 0", "generator-rate", "0", "use a rate from"),
        (COLUMNS, ", rate = 1e9", "generator-rate", "1e9", "use a rate from"),
        (COLUMNS.replace("num", "nums"), "", "generated-column", "nums", "did you mean `num`?"),
        (COLUMNS.replace("INT", "BIGINT"), "", "generated-column", "num BIGINT", "declare it INT"),
        ("price FLOAT, " + COLUMNS, "", "generated-column", "price", "there is"),
        (
            "at TIMESTAMP, since TIMESTAMP, WATERMARK FOR since AS since",
            "",
            "generated-column",
            "since",
            "there is",
        ),
    ],
)
def test_a_stream_is_declared_as_its_generator_makes_it(
    columns: str, options: str, code: str, where: str, hint: str
) -> None:
    error = error_of(FLIGHTS.format(columns, options))
    assert (error.code, marked(error)) == (code, where)
    assert hint in error.hint


def test_an_unknown_generator() -> None:
    error = error_of(FLIGHTS.format(COLUMNS, "").replace("flights'", "fligths'"))
    assert (error.code, marked(error)) == ("unknown-generator", "'airline.fligths'")
    assert error.hint == "did you mean `airline.flights`?"


def test_a_table_in_a_database() -> None:
    text = "CREATE TABLE t (k INT) WITH (connector = 'duckdb', path = 'house.duckdb', table = 'rooms');"
    table = load_text(text, base=HERE).catalog.table("t")
    assert table.connector == "duckdb"
    assert dict(table.options) == {"path": "/srv/work/house.duckdb", "table": "rooms"}


@pytest.mark.parametrize(
    ("head", "expected", "in_words"),
    [
        ("", Sink(), ""),
        ("WITH (sink = 'parquet')", Sink(), ""),
        ("INTO 'out'", Sink(target="/srv/work/out"), "/srv/work/out"),
        ("INTO 'out' WITH (sink = 'json')", Sink(SinkKind.JSON, "/srv/work/out"), "json /srv/work/out"),
        ("WITH (sink = 'json')", Sink(SinkKind.JSON), "json"),
        ("WITH (sink = 'console')", Sink(SinkKind.CONSOLE), "console"),
        ("WITH (sink = 'memory')", Sink(SinkKind.MEMORY), "memory"),
        (
            "WITH (sink = 'spark', format = 'delta', path = 'out', option.mergeSchema = true)",
            Sink(SinkKind.SPARK, "/srv/work/out", "delta", {"mergeSchema": "true"}),
            "spark delta /srv/work/out",
        ),
    ],
)
def test_sinks(head: str, expected: Sink, in_words: str) -> None:
    assert sink(head) == expected
    assert str(sink(head)) == in_words


def test_an_option_of_a_sink_may_be_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_TEST_PASSWORD", "hush")
    found = sink("WITH (sink = 'spark', format = 'kafka', option.password = '${PLAIT_TEST_PASSWORD}')")
    assert found.spark_options == {"password": "hush"}
    assert "hush" not in f"{found} {found!r}"


@pytest.mark.parametrize(
    ("first", "second", "holder"),
    [
        ("", "INTO 'in'", "holds the data of stream `s`"),
        ("", "INTO 'in/below/r'", "is inside the folder that stream `s` is read from"),
        ("INTO 'out'", "INTO './out/'", "takes the results of query `q`"),
        ("INTO 'out'", "INTO '/srv/work/out' WITH (sink = 'json')", "takes the results of query `q`"),
    ],
)
def test_a_folder_takes_the_results_of_one_query(first: str, second: str, holder: str) -> None:
    error = error_of(
        f"""{STREAM} WITH (connector = 'files', path = 'in', format = 'csv');
        CREATE CONTINUOUS QUERY q {first} AS SELECT k FROM s;
        CREATE CONTINUOUS QUERY r {second} AS SELECT k FROM s;"""
    )
    assert (error.code, error.message) == ("sink-path", f"this folder {holder}")
    assert marked(error) == second.split()[1]
