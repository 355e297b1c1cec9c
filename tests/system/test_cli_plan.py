"""`plait plan`: its formats, what it compares, what it writes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from plait.cli import run

ROOT = Path(__file__).parents[2]
TRAFFIC = str(ROOT / "examples" / "traffic.sql")
AIRLINE = str(ROOT / "examples" / "airline.sql")


def test_text_says_what_is_shared_and_by_whom(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", AIRLINE, "--full"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("12 queries planned by plait")
    assert "gate_17, gate_17_display" in shown
    assert "losangeles" in shown


def test_json_is_the_plan_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", AIRLINE, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert run(["plan", AIRLINE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["operators"] == document["operators"]
    assert document["version"] == 3
    assert document["planner"] == "plait"
    assert {query["name"] for query in document["queries"]} >= {"gate_12", "cold_demand"}


def test_svg_shows_queries_and_sites(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", AIRLINE, "--format", "svg"]) == 0
    texts = {"".join(e.itertext()) for e in ElementTree.fromstring(capsys.readouterr().out).iter()}
    assert {"flights", "weather", "busiest_belts"} <= texts
    assert any(text.startswith("minneapolis · ") for text in texts)


def test_dot_has_every_query(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", TRAFFIC, "--format", "dot"]) == 0
    dot = capsys.readouterr().out
    assert dot.startswith("digraph plait {")
    assert '"query left_turns"' in dot


def test_compare_shows_all_planners(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", TRAFFIC, "--compare"]) == 0
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert lines[0].split()[:3] == ["planner", "status", "admitted"]
    assert [line.split()[0] for line in lines[2:]] == ["plait", "independent"]
    assert output.err.count("notice[assumed-statistics]") == 2, "once for each stream"
    assert run(["plan", TRAFFIC, "--compare", "--json"]) == 0
    plans = json.loads(capsys.readouterr().out)["plans"]
    assert [plan["planner"] for plan in plans] == ["plait", "independent"]


@pytest.mark.parametrize(
    "arguments",
    [
        "--compare --format svg",
        "--compare --planner plait",
        "--compare --full",
        "--format svg --full",
        "--format svg --json",
    ],
)
def test_what_contradicts_itself_is_refused(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", TRAFFIC, *arguments.split()]) == 2
    output = capsys.readouterr()
    assert "usage" in output.err + output.out


def test_an_unknown_planner_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", TRAFFIC, "--planner", "independant"]) == 2
    assert "did you mean `independent`?" in capsys.readouterr().err
    assert run(["plan", TRAFFIC, "--planner", "best", "--format", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"][0]["code"] == "unknown-planner"


def test_what_was_assumed_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", TRAFFIC]) == 0
    assert "notice[assumed-statistics]" in capsys.readouterr().err
    assert run(["plan", TRAFFIC, "--sample"]) == 0
    assert "notice" not in capsys.readouterr().err


def test_sites_that_are_too_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.sql"
    file.write_text(
        "CREATE SITE tiny WITH (cores = 0.001);"
        "CREATE STREAM s (x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (rate = 1000000, site = 'tiny');"
        "CREATE CONTINUOUS QUERY q AS SELECT x + 1 AS y FROM s;"
    )
    assert run(["plan", str(file)]) == 3
    shown = capsys.readouterr().out
    assert "1 query planned by plait, 1 refused" in shown
    assert "cores of `tiny`" in shown
    assert run(["plan", str(file), "--format", "svg"]) == 3
    assert "Refused: 1" in capsys.readouterr().out
    assert run(["plan", str(file), "--compare"]) == 3
    assert "notice[refused-queries]: `plait` refuses 1 of 1 query: `q`" in capsys.readouterr().err
    # One that can be carried is enough, but what is refused is said.
    file.write_text(
        file.read_text() + "CREATE STREAM t (x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
        " WITH (rate = 1, site = 'tiny'); CREATE CONTINUOUS QUERY small AS SELECT x + 1 AS y FROM t;"
    )
    assert run(["plan", str(file), "--json"]) == 0
    assert "notice[refused-queries]: the sites cannot carry 1 of 2 queries: `q`" in capsys.readouterr().err


def test_a_folder_stands_for_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The query comes before the stream it reads, in another file.
    (tmp_path / "a.sql").write_text("CREATE CONTINUOUS QUERY q AS SELECT x FROM s;")
    (tmp_path / "b.sql").write_text("CREATE STREAM s (x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);")
    (tmp_path / "notes.txt").write_text("not SQL")
    assert run(["plan", str(tmp_path)]) == 0
    assert "1 query planned by plait" in capsys.readouterr().out
    assert run(["plan", str(tmp_path / "a.sql"), str(tmp_path / "b.sql")]) == 0
