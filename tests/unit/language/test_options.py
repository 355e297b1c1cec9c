"""Options of WITH: keys, units, secrets."""

import pytest

from plait.catalog import Secret
from plait.errors import PlaitError, Source
from plait.language import quantities
from plait.language.options import Option
from plait.language.quantities import QuantityError
from plait.language.statements import CreateLink, CreateQuery, CreateSite, CreateStream, CreateTable, parse

HEADS = {
    "stream": "CREATE STREAM s (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)",
    "table": "CREATE TABLE t (a INT)",
    "site": "CREATE SITE a",
    "link": "CREATE LINK a TO b",
    "query": "CREATE CONTINUOUS QUERY q",
}


def read(kind: str, text: str) -> tuple[dict[str, Option], list[PlaitError]]:
    rest = " AS SELECT a FROM s" if kind == "query" else ""
    [statement], errors = parse(Source("test.sql", f"{HEADS[kind]} WITH ({text}){rest}"))
    assert isinstance(statement, CreateStream | CreateTable | CreateSite | CreateLink | CreateQuery)
    return {option.key: option for option in statement.options}, errors


def marked(error: PlaitError) -> str:
    assert error.span is not None
    return error.span.source.text[error.span.start : error.span.end]


@pytest.mark.parametrize(
    ("kind", "text", "key", "value"),
    [
        ("stream", "rate = 5", "rate", 5.0),
        ("stream", "rate = 0.5", "rate", 0.5),
        ("stream", "rate = '5 rows/s'", "rate", 5.0),
        ("stream", "rate = '240/min'", "rate", 4.0),
        ("stream", "rate = '1500/5 min'", "rate", 5.0),
        ("stream", "rate = '60 per minute'", "rate", 1.0),
        ("stream", "rate = 0", "rate", 0.0),
        ("stream", "'rate' = 5", "rate", 5.0),
        ("stream", "row_bytes = 120", "row_bytes", 120),
        ("stream", "row_bytes = '2 KiB'", "row_bytes", 2048),
        ("stream", "distinct.A = 3", "distinct.a", 3),
        ("stream", "start = 'Latest'", "start", "latest"),
        ("stream", "start = '2026-01-31 12:00:00'", "start", "2026-01-31 12:00:00"),
        ("stream", "idle_timeout = '30 s'", "idle_timeout", 30_000_000),
        ("stream", "max_future = '1 hour'", "max_future", 3_600_000_000),
        ("stream", "site = 'atlanta'", "site", "atlanta"),
        (
            "stream",
            "connector = 'files', path = 'x', format = 'csv', files_per_batch = 3",
            "files_per_batch",
            3,
        ),
        ("stream", "connector = 'Spark', format = 'kafka', value_format = 'JSON'", "value_format", "json"),
        ("stream", "connector = 'spark', format = 'com.example.Source'", "format", "com.example.Source"),
        (
            "stream",
            "connector = 'spark', format = 'kafka', OPTION.kafka.bootstrap.servers = 'a:1,b:2'",
            "option.kafka.bootstrap.servers",
            "a:1,b:2",
        ),
        (
            "stream",
            "connector = 'spark', format = 'rate', option.rowsPerSecond = 100",
            "option.rowsPerSecond",
            "100",
        ),
        (
            "stream",
            "connector = 'spark', format = 'x', option.Table.Order = true",
            "option.Table.Order",
            "true",
        ),
        ("stream", "connector = 'spark', format = 'x', 'option.a-b' = ''", "option.a-b", ""),
        ("stream", "connector = 'generator', generator = 'Airline.Flights'", "generator", "airline.flights"),
        ("stream", "connector = 'generator', generator = 'a.b', seed = 0", "seed", 0),
        (
            "stream",
            "connector = 'generator', generator = 'a.b', end = '2026-02-01'",
            "end",
            "2026-02-01 00:00:00",
        ),
        ("table", "connector = 'duckdb', path = 'x.duckdb', table = 'Two words'", "table", "Two words"),
        ("query", "sink = 'Memory'", "sink", "memory"),
        ("query", "sink = 'spark', format = 'delta', path = 's3a://b/x'", "path", "s3a://b/x"),
        (
            "query",
            "sink = 'spark', format = 'delta', option.mergeSchema = true",
            "option.mergeSchema",
            "true",
        ),
        ("table", "rows = 0", "rows", 0),
        ("site", "cores = 2.5", "cores", 2.5),
        ("site", "memory = '16 GB'", "memory", 16_000_000_000),
        ("site", "in_bandwidth = '1 Gbps'", "in_bandwidth", 125_000_000.0),
        ("site", "out_bandwidth = '10 MB/s'", "out_bandwidth", 10_000_000.0),
        ("site", "database = 'DuckDB'", "database", "duckdb"),
        ("link", "latency = '0 ms'", "latency", 0),
        ("link", "latency = '1.5 ms'", "latency", 1500),
    ],
)
def test_values_and_units(kind: str, text: str, key: str, value: object) -> None:
    options, errors = read(kind, text)
    assert errors == []
    assert options[key].value == value


@pytest.mark.parametrize(
    ("kind", "text", "code", "where", "hint"),
    [
        ("stream", "rat = 5", "unknown-option", "rat", "did you mean `rate`?"),
        ("stream", "distinct = 5", "unknown-option", "distinct", "did you mean `distinct.<column>`?"),
        ("link", "cores = 4", "unknown-option", "cores", "there is `bandwidth`, `latency`"),
        ("stream", "rate = 5, RATE = 6", "duplicate-option", "RATE", "keep one"),
        ("stream", "rate = -5", "option-value", "-5", None),
        ("stream", "rate = 'nan'", "option-value", "'nan'", None),
        ("stream", "rate = 'inf'", "option-value", "'inf'", None),
        ("stream", "rate = 1e13", "option-value", "1e13", None),
        ("stream", "rate = '5/fortnight'", "option-value", "'5/fortnight'", None),
        ("stream", "rate = '5/0 s'", "option-value", "'5/0 s'", None),
        ("stream", "rate = true", "option-value", "true", None),
        ("stream", "row_bytes = 0", "option-value", "0", None),
        ("stream", "row_bytes = 1.5", "option-value", "1.5", None),
        ("stream", "distinct.a = 1.5", "option-value", "1.5", None),
        ("stream", "distinct.a = 99999999999999999999", "option-value", "99999999999999999999", None),
        ("stream", "start = 'yesterday'", "option-value", "'yesterday'", None),
        (
            "stream",
            "start = '2026-01-31T12:00:00+02:00'",
            "option-value",
            "'2026-01-31T12:00:00+02:00'",
            None,
        ),
        ("stream", "idle_timeout = 5", "option-value", "5", "for example '5 seconds'"),
        ("stream", "site = 'a b'", "option-value", "'a b'", None),
        ("stream", "path = 'x'", "option-conflict", "path", "add connector = 'files'"),
        ("stream", "end = '2026-01-31'", "option-conflict", "end", "add connector = 'generator'"),
        ("stream", "files_per_batch = 5", "option-conflict", "files_per_batch", "add connector = 'files'"),
        ("stream", "option.topic = 'x'", "option-conflict", "option.topic", "add connector = 'spark'"),
        ("stream", "connector = 'spark'", "option-conflict", "connector", "add format = 'kafka'"),
        ("stream", "connector = 'spark', format = 'a b'", "option-value", "'a b'", None),
        (
            "stream",
            "connector = 'spark', format = 'rate', seed = 7",
            "option-conflict",
            "seed",
            "leave `seed` out",
        ),
        (
            "stream",
            "connector = 'spark', format = 'x', value_format = 'avro'",
            "option-value",
            "'avro'",
            "use 'json'",
        ),
        (
            "stream",
            "connector = 'spark', format = 'x', option.aB = 1, option.Ab = 2",
            "duplicate-option",
            "option.Ab",
            "keep one",
        ),
        (
            "stream",
            "connector = 'spark', format = 'x', option.a..b = 1",
            "unknown-option",
            "option.a..b",
            None,
        ),
        (
            "stream",
            "connector = 'files', path = 'x', format = 'csv', files_per_batch = 0",
            "option-value",
            "0",
            None,
        ),
        (
            "stream",
            "connector = 'generator', generator = 'a.b', start = '2026-01-02', end = '2026-01-02'",
            "option-conflict",
            "end",
            "give a later `end`",
        ),
        ("stream", "connector = 'generator', generator = 'flights'", "option-value", "'flights'", None),
        (
            "stream",
            "connector = 'generator'",
            "option-conflict",
            "connector",
            "add generator = 'airline.flights'",
        ),
        ("stream", "connector = 'duckdb', path = 'x'", "option-value", "'duckdb'", None),
        ("table", "connector = 'spark', format = 'x'", "option-value", "'spark'", None),
        ("table", "connector = 'duckdb', path = 'x', format = 'csv'", "option-conflict", "format", None),
        ("table", "connector = 'duckdb'", "option-conflict", "connector", "add path = 'data/rooms.duckdb'"),
        ("query", "sink = 'file'", "option-value", "'file'", None),
        ("query", "sink = 'kafka'", "option-value", "'kafka'", "use sink = 'spark', format = 'kafka'"),
        ("query", "sink = 'spark'", "option-conflict", "sink", "add format = 'kafka'"),
        ("query", "sink = 'console', path = 'x'", "option-conflict", "path", "leave `path` out"),
        ("query", "path = 'x'", "option-conflict", "path", "add sink = 'spark'"),
        ("query", "rate = 5", "unknown-option", "rate", None),
        ("site", "cores = 0", "option-value", "0", None),
        ("site", "memory = '16 parsecs'", "option-value", "'16 parsecs'", None),
        ("site", "memory = '99999 PB'", "option-value", "'99999 PB'", None),
        ("site", "bandwidth = 100", "option-value", "100", None),
        ("site", "bandwidth = '100 MBPS'", "option-value", "'100 MBPS'", None),
        ("site", "bandwidth = '-1 Gbps'", "option-value", "'-1 Gbps'", None),
        ("site", "bandwidth = '1 Gbps', in_bandwidth = '1 Gbps'", "option-conflict", "in_bandwidth", None),
        ("site", "database = 'oracle'", "option-value", "'oracle'", "use 'duckdb'"),
        ("link", "latency = '20'", "option-value", "'20'", "for example '20 seconds'"),
    ],
)
def test_mistakes_name_the_way_out(kind: str, text: str, code: str, where: str, hint: str | None) -> None:
    _, errors = read(kind, text)
    [error] = errors
    assert (error.code, marked(error)) == (code, where)
    assert error.hint
    assert hint is None or error.hint == hint


def test_options_that_need_each_other() -> None:
    assert [error.message for error in read("stream", "connector = 'files'")[1]] == [
        "connector 'files' needs a `path`",
        "connector 'files' needs a `format`",
    ]
    _, [error] = read("table", "connector = 'files', path = 'x', format = 'json', header = true")
    assert error.message == "`header` is an option of format 'csv'"
    options, errors = read(
        "table", "connector = 'files', path = '/x', format = 'csv', header = true, delimiter = ';'"
    )
    assert errors == []
    assert (options["header"].value, options["delimiter"].value) == (True, ";")


def test_a_bad_connector_is_complained_of_once() -> None:
    _, [error] = read("stream", "connector = 'fils', path = 'x', format = 'parquet'")
    assert error.message == "`connector`: `fils` is not one of 'files', 'spark', 'generator'"
    assert error.hint == "did you mean `files`?"
    _, [error] = read("stream", "connector = 'kafka', option.topic = 'x'")
    assert error.hint == "use connector = 'spark', format = 'kafka'"


@pytest.mark.parametrize("path", ["../x", "a/../../x", "..", r"..\\x", "", "a\tb", "x" * 1001])
def test_paths_that_are_refused(path: str) -> None:
    _, errors = read("table", f"connector = 'files', path = '{path}', format = 'csv'")
    [error] = errors
    assert error.code == "option-value"


def test_secrets_come_from_the_environment_and_show_as_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_TEST_FOLDER", "hush")
    options, errors = read(
        "table", "connector = 'files', path = '/data/${PLAIT_TEST_FOLDER}/x', format = 'csv'"
    )
    assert errors == []
    secret = options["path"].value
    assert isinstance(secret, Secret)
    assert secret.reveal() == "/data/hush/x"
    assert str(secret) == "/data/${PLAIT_TEST_FOLDER}/x"
    assert "hush" not in repr(options)


def test_an_error_about_a_secret_does_not_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_TEST_FOLDER", "../hush")
    _, [error] = read("table", "connector = 'files', path = '${PLAIT_TEST_FOLDER}', format = 'csv'")
    assert error.code == "option-value"
    assert "hush" not in error.render() + str(error.to_json())
    _, [error] = read("stream", "rate = '${PLAIT_TEST_FOLDER}'")
    assert error.code == "option-not-secret"
    assert "hush" not in error.render() + str(error.to_json())


def test_variables_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAIT_TEST_FOLDER", raising=False)
    _, [error] = read("table", "connector = 'files', path = '${PLAIT_TEST_FOLDER}', format = 'csv'")
    assert (error.code, "PLAIT_TEST_FOLDER" in error.message) == ("unset-variable", True)
    for broken in ("${}", "${A B}", "${OPEN"):
        _, [error] = read("table", f"connector = 'files', path = '{broken}', format = 'csv'")
        assert error.code == "option-variable"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("rate = 5s", "5s"),
        ("rate = fast", "fast"),
        ("rate =", ")"),
        ("rate", ")"),
        ("= 5", "="),
        ("rate = 5 path = 'x'", "path"),
    ],
)
def test_options_that_are_no_options(text: str, where: str) -> None:
    _, [error] = parse(Source("test.sql", f"{HEADS['stream']} WITH ({text})"))
    assert (error.code, marked(error)) == ("syntax", where)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fast",
        "5",
        "5 minuts",
        "minutes",
        "5 minutes ago",
        "1e99 s",
        "nan s",
        "5 5 minutes",
        "½ s",
        "٣ s x",
    ],
)
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(QuantityError) as raised:
        quantities.parse_duration(text)
    assert raised.value.hint
