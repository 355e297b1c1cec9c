"""Runs that are refused before Spark is started, or before anything runs on it: a clear error, and no
file is changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.cli import run as run_command
from plait.deployment.fragments import Way
from plait.deployment.lowering import fragments
from plait.engines import database_tables
from plait.engines.table_versions import TableVersions
from plait.errors import ExternalError, PlaitError, UserError
from plait.planners import PLANNERS
from plait.runtime.declarations import declarations_of
from plait.runtime.journal import Journal
from plait.runtime.lock import FolderLock
from plait.runtime.manifest import FORMAT
from plait.runtime.outlets import outlets_of, record
from plait.runtime.results_folder import MARKER
from plait.runtime.state import FragmentFolder, StateFolder, StreamFolder
from plait.runtime.state_key import LOCK, MANIFEST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = """CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'readings', format = 'parquet');
"""
SQL = f"""{STREAM}
CREATE CONTINUOUS QUERY high AS SELECT plug FROM readings WHERE load > 5;
CREATE CONTINUOUS QUERY pairs AS SELECT sum(load) AS total FROM readings [ROWS 2];
"""
NOBODYS_BUSINESS = ("Traceback", "py4j", "java.", "org.apache", "Exception", "SQLSTATE")


def write_parquet(file: Path, **changed: Any) -> None:
    columns = {
        "plug": pa.array([1, 2], pa.int32()),
        "load": pa.array([10, 20], pa.int32()),
        "at": pa.array([datetime(2026, 1, 1, 12, 0, second, tzinfo=UTC) for second in (1, 2)]),
    }
    kept = {name: values for name, values in (columns | changed).items() if values is not None}
    pq.write_table(pa.table(kept), file)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "readings").mkdir()
    write_parquet(tmp_path / "readings" / "a.parquet")
    return tmp_path


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    from plait.spark import session

    def started(*_: object, **__: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr(session, "session", started)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this process had no Spark yet: with one, none is started."""
    from plait.spark import session

    monkeypatch.setattr(session, "present", lambda: None)


def contents(folder: Path) -> dict[str, bytes]:
    """All files but for locks and marks, which say who was there last."""
    files = (p for p in folder.rglob("*") if p.is_file() and p.name not in ("lock", "spark-lock", MARKER))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def refused(place: Path, text: str = SQL, *, spark: SparkSession | None = None, **options: Any) -> PlaitError:
    """The error of a run that does not begin, and leaves everything as it was. Every query runs by itself,
    unless another planner is named."""
    before = contents(place)
    usual: dict[str, Any] = {
        "planner": "independent",
        "state": place / "state",
        "results": place / "results",
    }
    with pytest.raises(PlaitError) as caught:
        plait.open_text(text, base=place, spark=spark).run(**usual | options)
    error = caught.value
    said = error.render()
    assert not any(words in said for words in NOBODYS_BUSINESS), said
    assert all(each.hint or each.detail or str(place) in each.message for each in error.errors), said
    assert contents(place) == before
    return error


# Options


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"trigger_seconds": -1.0}, "trigger"),
        ({"trigger_seconds": float("nan")}, "trigger"),
        ({"trigger_seconds": float("inf")}, "trigger"),
        ({"for_seconds": -5.0}, "run-time"),
        ({"for_seconds": float("nan")}, "run-time"),
        ({"planner": "pliat"}, "unknown-planner"),
        ({"streams": {"reading": None}}, "unknown-stream"),
    ],
)
def test_options_that_make_no_sense(place: Path, options: dict[str, Any], code: str) -> None:
    assert refused(place, **options).code == code
    assert not (place / "state").exists()


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("words", ["--trigger 0s", "--trigger -1s", "--for -5s", "--for soon", "--trigger 5"])
def test_times_that_make_no_sense(
    place: Path, words: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    Path("q.sql").write_text(SQL)
    assert run_command(["run", "q.sql", *words.split()]) == 2
    assert "error[usage]: " in capfd.readouterr().err
    assert not Path("plait-state").exists()


def test_names_that_differ_only_in_their_case(place: Path) -> None:
    with pytest.raises(PlaitError) as caught:
        plait.open_text(SQL + "CREATE CONTINUOUS QUERY HIGH AS SELECT load FROM readings;", base=place)
    assert "there is already a query `HIGH`" in caught.value.render()


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    "options",
    [{"state": "readings/state"}, {"results": "readings"}, {"results": "linked/results"}],
    ids=["state", "results", "linked"],
)
def test_what_is_written_would_be_read(place: Path, options: dict[str, str]) -> None:
    (place / "linked").symlink_to(place / "readings")
    places: dict[str, Any] = {name: place / folder for name, folder in options.items()}
    error = refused(place, **places)
    assert error.code == "folder-in-source"


@pytest.mark.usefixtures("no_spark")
def test_the_results_of_a_query_would_be_read(place: Path) -> None:
    """Its folder, which has its name, is the stream's."""
    (place / "results").mkdir()
    (place / "readings").rename(place / "results" / "high")
    error = refused(place, SQL.replace("'readings'", "'results/high'"))
    assert error.code == "folder-in-source"


def test_results_into_the_folder_of_a_stream(place: Path) -> None:
    with pytest.raises(PlaitError, match="holds the data of stream `readings`"):
        plait.open_text(SQL.replace("high AS", "high INTO 'readings' AS"), base=place)


@pytest.mark.usefixtures("without_spark")
def test_spark_connect(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    error = refused(place)
    assert error.code == "spark-connect"
    assert "unset SPARK_REMOTE" in error.hint
    assert not (place / "state").exists()


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("master", ["nonsense", "http://host:7077", "spark:/host", "sc://host"])
def test_masters_that_are_none(place: Path, master: str) -> None:
    error = refused(place, master=master)
    assert error.code == "spark-master"
    assert f"`{master}`" in error.message
    assert not (place / "state").exists()


# State folders


@pytest.fixture
def begun(place: Path) -> Path:
    """A state folder of which batch 0 is done; every query runs by itself."""
    return begin(place, "independent")


@pytest.fixture
def begun_together(place: Path) -> Path:
    """The same of queries that run together."""
    return begin(place, "plait")


def begin(place: Path, planner: str) -> Path:
    session = plait.open_text(SQL, base=place)
    workload, together = session.workload, PLANNERS[planner].shares
    running = fragments(session.plan(planner).deployment, workload.catalog, together=together)
    declared = declarations_of(workload, running)
    path = place / "state"
    state = StateFolder.open(path, declared, planner=planner, spark=version("pyspark"), drain=False)
    state.prepare(state.manifest.declarations.fragments, state.manifest.declarations.streams)
    state.create()
    folders = [state.fragment(each.name) for each in running]
    begun: list[FragmentFolder | StreamFolder] = [*folders, state.stream("readings")]
    for folder in begun:
        for log in ("offsets", "commits"):
            (folder.checkpoint / log).mkdir(parents=True)
            (folder.checkpoint / log / "0").write_text("v1\n{}")
        journal = Journal(folder.journal)
        journal.begin(0, dict)
        journal.finish(0, {}, {})
        journal.close()
    for fragment, kept in zip(running, folders, strict=True):
        if fragment.way is not Way.NATIVE:
            kept.database.write_bytes(b"")
    record(path, outlets_of(workload, running, place / "results").values())
    state.close()
    return path


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def changed(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def replaced_by_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


DAMAGE: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "a truncated manifest": (lambda s: cut(s / MANIFEST), "state-damaged", "is no JSON"),
    "an empty manifest": (lambda s: (s / MANIFEST).write_text(""), "state-damaged", "is no JSON"),
    "a manifest that is a list": (lambda s: (s / MANIFEST).write_text("[]"), "state-damaged", "no object"),
    "half a manifest": (
        lambda s: (s / MANIFEST).write_text(f'{{"format": {FORMAT}}}'),
        "state-damaged",
        "is incomplete",
    ),
    "no manifest": (lambda s: (s / MANIFEST).unlink(), "state-damaged", f"{MANIFEST} is missing"),
    "another format": (
        lambda s: changed(s / MANIFEST, f'"format": {FORMAT}', '"format": 99'),
        "state-version",
        "it has format 99",
    ),
    "another Spark": (
        lambda s: changed(s / MANIFEST, f'"spark": "{version("pyspark")}"', '"spark": "3.5.1"'),
        "state-version",
        "was written with Spark 3.5.1",
    ),
    "a query's checkpoint is gone": (
        lambda s: shutil.rmtree(s / "fragments" / "high" / "checkpoint"),
        "state-damaged",
        "of `high` the checkpoint is missing",
    ),
    "a stream's checkpoint is gone": (
        lambda s: shutil.rmtree(s / "streams" / "readings" / "checkpoint"),
        "state-damaged",
        "stream `readings` the checkpoint is missing",
    ),
    "a journal is gone": (
        lambda s: (s / "fragments" / "high" / "journal.sqlite").unlink(),
        "state-damaged",
        "the journal ends before batch 0",
    ),
    "a journal is garbage": (
        lambda s: (s / "fragments" / "high" / "journal.sqlite").write_bytes(b"garbage" * 1000),
        "journal",
        "journal.sqlite",
    ),
    "a database is gone": (
        lambda s: (s / "fragments" / "pairs" / "state.duckdb").unlink(),
        "state-damaged",
        "state.duckdb is missing",
    ),
    "a file in place of a checkpoint's folder": (
        lambda s: replaced_by_file(s / "fragments" / "high" / "checkpoint" / "offsets"),
        "checkpoint",
        "Not a directory",
    ),
}


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_state_is_refused(place: Path, begun: Path, damage: str) -> None:
    inflict, code, words = DAMAGE[damage]
    inflict(begun)
    error = refused(place)
    assert error.code == code
    assert words in error.render()
    assert error.hint


def only_fragment(state: Path) -> Path:
    (folder,) = (state / "fragments").iterdir()
    return folder


DAMAGE_TOGETHER: dict[str, tuple[Callable[[Path], object], str]] = {
    "the checkpoint is gone": (
        lambda s: shutil.rmtree(only_fragment(s) / "checkpoint"),
        "of `shared-0` the checkpoint is missing",
    ),
    "the journal is gone": (
        lambda s: (only_fragment(s) / "journal.sqlite").unlink(),
        "the journal ends before batch 0",
    ),
    "the database is gone": (
        lambda s: (only_fragment(s) / "state.duckdb").unlink(),
        "of `shared-0` the file state.duckdb is missing",
    ),
}


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("damage", DAMAGE_TOGETHER)
def test_a_damaged_state_of_queries_that_run_together(place: Path, begun_together: Path, damage: str) -> None:
    inflict, words = DAMAGE_TOGETHER[damage]
    inflict(begun_together)
    error = refused(place, planner="plait")
    assert error.code == "state-damaged"
    assert words in error.render()


@pytest.mark.usefixtures("no_spark", "begun_together")
@pytest.mark.parametrize(
    ("text", "change"),
    [
        (SQL.replace("load > 5", "load > 6"), "query `high` changed:"),
        (SQL + "CREATE CONTINUOUS QUERY more AS SELECT load FROM readings;", "1 query added: `more`"),
    ],
)
def test_a_state_of_other_queries_that_ran_together(place: Path, text: str, change: str) -> None:
    error = refused(place, text, planner="plait")
    assert error.code == "state-changed"
    assert change in error.detail


@pytest.mark.usefixtures("no_spark", "begun_together")
def test_a_state_of_another_planner(place: Path) -> None:
    error = refused(place, planner="independent")
    assert error.code == "state-changed"
    assert "with the planner plait, not with independent" in error.message


@pytest.mark.usefixtures("no_spark", "begun")
def test_a_state_of_other_queries(place: Path) -> None:
    error = refused(place, SQL.replace("load > 5", "load > 6"))
    assert error.code == "state-changed"
    assert "load > 5" in error.detail
    assert "load > 6" in error.detail


@pytest.mark.usefixtures("no_spark")
def test_a_state_that_another_process_uses(place: Path, begun: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from plait.runtime.lock import FolderLock; "
        "lock = FolderLock(Path(sys.argv[1])); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(begun / LOCK)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UserError, match=f"another run uses .* process {other.pid}"):
            plait.open_text(SQL, base=place).run(state=begun, results=place / "results")
        other.communicate("\n")
    FolderLock(begun / LOCK).release()


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("file", "is no folder"),
        ("file/state", "Not a directory"),
        ("other", "is no state folder, and not empty"),
        ("st*te", "has one of the signs"),
        ("x" * 300, "File name too long"),
    ],
)
def test_places_where_no_state_can_be(place: Path, state: str, words: str) -> None:
    (place / "other").mkdir()
    (place / "other" / "mine.txt").write_text("keep me")
    (place / "file").write_text("")
    error = refused(place, state=place / state)
    assert error.code == "state-folder"
    assert words in error.render()


# Tables


@pytest.fixture
def tables(tmp_path: Path) -> Callable[[], None]:
    """Reads the tables `stored` and `held` of a folder as a batch does."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute("CREATE TABLE held AS FROM (VALUES (1, 7), (2, 8)) t(k, w)")
    (tmp_path / "stored").mkdir()
    (tmp_path / "stored" / "a.csv").write_text("k,w\n1,7\n")
    text = """CREATE TABLE stored (k INT, w INT) WITH (connector = 'files', path = 'stored', format = 'csv');
    CREATE TABLE held (k INT, w INT) WITH (connector = 'duckdb', path = 't.duckdb');"""
    versions = TableVersions(plait.open_text(text, base=tmp_path).workload.catalog, tmp_path / "versions")

    def read() -> None:
        versions.current(["stored", "held"])

    read()
    return read


def execute(database: Path, statement: str) -> None:
    with duckdb.connect(str(database)) as connection:
        connection.execute(statement)


TABLES: dict[str, tuple[Callable[[Path], object], str]] = {
    "dropped": (lambda f: execute(f / "t.duckdb", "DROP TABLE held"), "stored-table"),
    "a column of another type": (
        lambda f: execute(f / "t.duckdb", "ALTER TABLE held ALTER w TYPE VARCHAR"),
        "stored-type",
    ),
    "a column less": (lambda f: execute(f / "t.duckdb", "ALTER TABLE held DROP w"), "stored-columns"),
    "no database": (lambda f: (f / "t.duckdb").write_bytes(b"garbage" * 1000), "unreadable-data"),
    "its file is gone": (lambda f: (f / "t.duckdb").unlink(), "no-such-path"),
    "its folder is gone": (lambda f: shutil.rmtree(f / "stored"), "no-such-path"),
    "a row that is none": (lambda f: (f / "stored" / "a.csv").write_text("k,w\n1,x\n"), "stored-value"),
    "another header": (lambda f: (f / "stored" / "a.csv").write_text("k,v\n1,7\n"), "stored-columns"),
    "a line too long": (lambda f: (f / "stored" / "a.csv").write_text("k,w\n1,7,9\n"), "unreadable-data"),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_that_changed_for_the_worse(
    case: str, tables: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, code = TABLES[case]
    monkeypatch.setattr(database_tables, "PATIENCE_S", 0.1)
    kept = contents(tmp_path / "versions")
    change(tmp_path)
    with pytest.raises(PlaitError) as caught:
        tables()
    assert caught.value.code == code
    assert str(tmp_path) in caught.value.render()
    assert contents(tmp_path / "versions") == kept


# What is found out with Spark, before anything runs


CORRUPT: dict[str, tuple[Callable[[Path], object], str]] = {
    "garbage": (lambda f: f.write_bytes(b"PAR1" + bytes(200) + b"PAR1"), "unreadable-data"),
    "truncated": (cut, "unreadable-data"),
    "another format": (lambda f: f.write_text("plug,load,at\n1,2,\n"), "unreadable-data"),
    "a missing column": (lambda f: write_parquet(f, load=None), "stored-columns"),
    "a renamed column": (
        lambda f: write_parquet(f, load=None, loda=pa.array([1, 2], pa.int32())),
        "stored-columns",
    ),
    "a wider type": (lambda f: write_parquet(f, load=pa.array([1, 2], pa.int64())), "stored-type"),
    "text": (lambda f: write_parquet(f, load=pa.array(["1", "2"])), "stored-type"),
    "a nested type": (lambda f: write_parquet(f, load=pa.array([{"a": 1}, None])), "stored-type"),
    "a list": (lambda f: write_parquet(f, load=pa.array([[1], None])), "stored-type"),
}


@pytest.mark.spark
@pytest.mark.parametrize("case", CORRUPT)
def test_a_file_that_does_not_fit(case: str, place: Path, spark: SparkSession) -> None:
    spoil, code = CORRUPT[case]
    file = place / "readings" / "b.parquet"
    write_parquet(file)
    spoil(file)
    error = refused(place, spark=spark)
    assert error.code == code
    assert str(file) in error.render()
    assert not (place / "state").exists()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda p: shutil.rmtree(p / "readings"), "no-such-path"),
        (lambda p: (p / "results").write_text(""), "results"),
        (lambda p: (p / "results").symlink_to(p / "results"), "results"),
        (
            lambda p: shutil.copytree(p / "readings", p / "results" / "high"),
            "results-folder-in-use",
        ),
    ],
    ids=["no folder", "a file for results", "a loop of links", "files of somebody"],
)
def test_folders_that_cannot_be_used(
    place: Path, spark: SparkSession, spoil: Callable[[Path], object], code: str
) -> None:
    spoil(place)
    error = refused(place, spark=spark)
    assert error.code == code
    assert not (place / "state").exists()


@pytest.mark.spark
def test_a_database_that_is_none(place: Path, begun: Path, spark: SparkSession) -> None:
    (begun / "fragments" / "pairs" / "state.duckdb").write_bytes(b"garbage" * 1000)
    error = refused(place, spark=spark)
    assert isinstance(error, ExternalError)
    assert "state.duckdb" in error.render()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("format = 'kafak'", "no-such-source"),
        ("format = 'rate', option.rowsPerSecond = 'many'", "spark"),
        ("format = 'socket'", "spark"),
        ("format = 'rate'", "source-columns"),
        ("format = 'parquet'", "spark"),
    ],
)
def test_sources_that_spark_does_not_take(place: Path, spark: SparkSession, options: str, code: str) -> None:
    files = "connector = 'files', path = 'readings', format = 'parquet'"
    error = refused(place, SQL.replace(files, f"connector = 'spark', {options}"), spark=spark)
    assert error.code == code
    assert not (place / "state").exists()


@pytest.mark.spark
def test_what_spark_refuses_shows_no_secret(
    place: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWS", "hush")
    files = "connector = 'files', path = 'readings', format = 'parquet'"
    rate = "connector = 'spark', format = 'rate', option.rowsPerSecond = '${ROWS}'"
    error = refused(place, SQL.replace(files, rate), spark=spark)
    assert "hush" not in error.render()
    assert "${ROWS}" in error.render()


@pytest.mark.spark
def test_a_spark_whose_files_are_elsewhere(place: Path, spark: SparkSession) -> None:
    context = spark.sparkContext._jsc
    assert context is not None
    settings = context.hadoopConfiguration()
    before = settings.get("fs.defaultFS")
    settings.set("fs.defaultFS", "hdfs://somewhere:8020")
    try:
        error = refused(place, spark=spark)
    finally:
        settings.set("fs.defaultFS", before)
    assert error.code == "spark-files"
    assert not (place / "state").exists()


@pytest.mark.usefixtures("no_spark")
def test_streams_without_a_connector(place: Path) -> None:
    stream = "CREATE STREAM {} (load INT, at TIMESTAMP, WATERMARK FOR at AS at)"
    query = "CREATE CONTINUOUS QUERY q AS SELECT a.load FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR]"
    error = refused(place, ";\n".join([query, stream.format("a"), stream.format("b")]))
    for each, name, line in zip(error.errors, "ab", (2, 3), strict=True):
        assert each.code == "no-connector"
        assert each.message == f"the stream `{name}`, which query `q` reads, has no connector"
        assert str(each.span) == f"<sql>:{line}:1"


@pytest.mark.spark
def test_frames_that_are_no_such_stream(place: Path, spark: SparkSession) -> None:
    text = SQL.replace("WITH (connector = 'files', path = 'readings', format = 'parquet')", "")
    reader = spark.readStream.format("rate")
    good = reader.load().selectExpr("1 AS plug", "2 AS load", "timestamp AS at")
    for frame, code in (
        (spark.range(1), "not-streaming"),
        (good.drop("load"), "source-columns"),
        (good.selectExpr("plug", "'2' AS load", "at"), "source-type"),
        (good.selectExpr("plug", "load", "CAST(at AS STRING) AS at"), "source-type"),
        (good.withWatermark("at", "1 second"), "watermark-twice"),
        ("readings", "no-frame"),
    ):
        assert refused(place, text, spark=spark, streams={"readings": frame}).code == code
    assert refused(place, text, spark=spark).code == "no-connector"
