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
    assert document["version"] == 1
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
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["planner", "status", "admitted"]
    assert [line.split()[0] for line in lines[1:]] == ["plait", "independent"]
    assert run(["plan", TRAFFIC, "--compare", "--format", "json"]) == 0
    plans = json.loads(capsys.readouterr().out)["plans"]
    assert [plan["planner"] for plan in plans] == ["plait", "independent"]
    assert run(["plan", TRAFFIC, "--compare", "--format", "svg"]) == 2


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


def test_output_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "plan.svg"
    target.write_text("old")
    assert run(["plan", TRAFFIC, "--format", "svg", "--output", str(target)]) == 0
    assert target.read_text().startswith("<svg")
    output = capsys.readouterr()
    assert output.out == ""
    assert f"wrote {target}" in output.err
    assert [path.name for path in tmp_path.iterdir()] == ["plan.svg"], "nothing else is left"


def test_output_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", TRAFFIC, "--output", str(tmp_path)]) == 2
    assert run(["plan", TRAFFIC, "--output", str(tmp_path / "none" / "plan.txt")]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path} is a folder" in error
    assert f"there is no folder {tmp_path / 'none'}" in error
    assert list(tmp_path.iterdir()) == []


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
    assert "of the cores of `tiny`" in shown
    assert run(["plan", str(file), "--format", "svg"]) == 3
    assert "Refused: 1" in capsys.readouterr().out


def test_a_folder_stands_for_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The query comes before the stream it reads, in another file.
    (tmp_path / "a.sql").write_text("CREATE CONTINUOUS QUERY q AS SELECT x FROM s;")
    (tmp_path / "b.sql").write_text("CREATE STREAM s (x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);")
    (tmp_path / "notes.txt").write_text("not SQL")
    assert run(["plan", str(tmp_path)]) == 0
    assert "1 query planned by plait" in capsys.readouterr().out
    assert run(["plan", str(tmp_path / "a.sql"), str(tmp_path / "b.sql")]) == 0
