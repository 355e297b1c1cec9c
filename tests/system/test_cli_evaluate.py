"""`plait evaluate`: which queries, in which format; and `plait check`, `plait bench`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import plait
from plait.benchmarks import BENCHMARKS, Claim, Report
from plait.cli import run
from plait.picture.chart import chart_svg

ROOT = Path(__file__).parents[2]
TRAFFIC = str(ROOT / "examples" / "traffic.sql")

STREAM = """
CREATE STREAM s (name STRING, x INT, y DOUBLE, d DECIMAL(6, 2), ok BOOLEAN, day DATE, ts TIMESTAMP,
                 WATERMARK FOR ts AS ts - INTERVAL 1 MINUTE)
  WITH (connector = 'files', path = '{path}', format = 'csv', header = true);
CREATE CONTINUOUS QUERY every AS SELECT name, x, y, d, ok, day, ts FROM s;
CREATE CONTINUOUS QUERY minutes AS SELECT window_end, count(*) AS n FROM s [RANGE 1 MINUTE];
"""
ROWS = '''name,x,y,d,ok,day,ts
"with, comma and ""quotes""",1,0.5,12.50,true,2026-01-31,2026-01-31 12:00:00
"",,,,,,2026-01-31 12:00:30.5
,2,1e300,-0.01,false,1999-12-31,2026-01-31 12:05:00
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text(ROWS)
    file = tmp_path / "s.sql"
    file.write_text(STREAM.format(path="rows.csv"))
    return file


def test_one_query_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", TRAFFIC, "left_turns"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "left_turns: 1 row"
    assert lines[-1].split() == ["SOXFAN4", "50"]


def test_all_queries_unless_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", TRAFFIC]) == 0
    shown = capsys.readouterr().out
    assert [line.split(":")[0] for line in shown.splitlines() if " row" in line] == [
        "left_turns",
        "slower_turns",
        "speed_by_type",
        "gone_straight",
    ]


def test_csv_can_be_read_as_a_stream_again(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "again.csv"
    assert run(["evaluate", str(file), "every", "--format", "csv", "--output", str(written)]) == 0
    again = plait.open_text(STREAM.format(path="again.csv"), base=tmp_path)
    assert again.evaluate("every").rows == plait.open(file).evaluate("every").rows
    assert capsys.readouterr().out == ""


def test_rows_set_aside_are_said_beside_csv(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = file.parent / "rows.csv"
    rows.write_text(rows.read_text() + "late,1,,,,,\n")
    assert run(["evaluate", str(file), "every", "--format", "csv"]) == 0
    output = capsys.readouterr()
    assert "set aside" not in output.out
    assert output.err == "set aside: 1 row of s without a usable event time\n"


def test_csv_holds_one_query(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", str(file), "--format", "csv"]) == 2
    assert "CSV holds the rows of one query, and there are 2" in capsys.readouterr().err


def test_json_has_types_and_exact_values(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", str(file), "every", "--json"]) == 0
    (query,) = json.loads(capsys.readouterr().out)["queries"]
    assert query["name"] == "every"
    assert query["columns"][3] == {"name": "d", "type": "DECIMAL(6,2)"}
    assert query["row_count"] == 3
    assert query["rows"][2] == [
        'with, comma and "quotes"',
        1,
        0.5,
        "12.50",
        True,
        "2026-01-31",
        "2026-01-31T12:00:00",
    ]


def test_limit(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", str(file), "every", "--limit", "1"]) == 0
    assert "… 2 more rows" in capsys.readouterr().out
    assert run(["evaluate", str(file), "every", "--limit", "1", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert run(["evaluate", str(file), "every", "--limit", "0"]) == 0
    assert "more row" not in capsys.readouterr().out


def test_as_of_watermark_leaves_open_what_is_open(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", str(file), "minutes"]) == 0
    assert capsys.readouterr().out.startswith("minutes: 2 rows")
    assert run(["evaluate", str(file), "minutes", "--as-of-watermark"]) == 0
    assert capsys.readouterr().out.startswith("minutes: 1 row\n")


def test_mistakes(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", str(file), "evry"]) == 2
    assert run(["evaluate", "no_such_folder"]) == 2
    (tmp_path / "rows.csv").unlink()
    assert run(["evaluate", str(file), "every"]) != 0
    error = capsys.readouterr().err
    assert "did you mean `every`?" in error
    assert "there is no file or folder no_such_folder" in error
    assert "rows.csv" in error
    assert "Traceback" not in error


def test_check_with_sample(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(file), "--sample", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["queries"][1]["columns"] == [
        {"name": "window_end", "type": "TIMESTAMP"},
        {"name": "n", "type": "BIGINT"},
    ]
    sampled = {each["statistic"]: each["sampled"] for each in document["statistics"]}
    assert sampled["rate"] == pytest.approx(2 / 300)
    assert run(["check", str(file), "--sample"]) == 0
    assert "distinct.name" in capsys.readouterr().out


def test_a_sample_says_what_it_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text("k,at\n1,1969-01-01 00:00:00\n2,2026-01-01 00:00:00\n")
    file = tmp_path / "q.sql"
    file.write_text(
        "CREATE STREAM s (k INT, at TIMESTAMP, WATERMARK FOR at AS at) "
        "WITH (connector = 'files', path = 'rows.csv', format = 'csv');"
        "CREATE CONTINUOUS QUERY q AS SELECT k FROM s;"
    )
    for command in ("check", "plan"):
        assert run([command, str(file), "--sample"]) == 0
        assert "1 of 2 rows of `s` are bad records" in capsys.readouterr().err
    assert run(["check", str(file), "--sample", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notices"][0]["code"] == "bad-records"


def test_benchmarks_are_listed_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench"]) == 0
    assert "planning" in capsys.readouterr().out
    assert run(["bench", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["benchmarks"]] == list(BENCHMARKS)
    assert run(["bench", "plannin"]) == 2
    assert "did you mean `planning`?" in capsys.readouterr().err
    assert run(["bench", "--json", "plannin"]) == 2
    assert "did you mean `planning`?" in capsys.readouterr().err
    assert run(["bench", "planning", "--all"]) == 2
    assert "--all runs every benchmark, and `planning` is one" in capsys.readouterr().err


@dataclass(frozen=True)
class MadeUp:
    """A benchmark that measures nothing."""

    report: Report
    name: ClassVar[str] = "made_up"
    summary: ClassVar[str] = "nothing"

    def run(self, _quick: bool, _observer: object) -> Report:
        return self.report


@pytest.mark.parametrize("holds", [True, False])
def test_a_claim_that_does_not_hold_fails(
    holds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = Claim("quick", "goal", against=10.0, ours=5.0, holds=holds, why_not="" if holds else "too slow")
    report = Report("made_up", False, {"seconds": 5.0}, [claim])
    monkeypatch.setattr("plait.cli.bench.BENCHMARKS", {"made_up": MadeUp(report)})
    file = tmp_path / "made_up.json"
    assert run(["bench", "made_up", "--json", "--output", str(file)]) == (0 if holds else 1)
    assert json.loads(file.read_text()) == report.to_json()
    assert ("does not hold: quick: too slow" in capsys.readouterr().err) is not holds
    file.unlink()
    assert run(["bench", "made_up", "--json", str(file)]) == (0 if holds else 1)
    assert json.loads(file.read_text()) == report.to_json()
    assert "seconds" in capsys.readouterr().out
    assert run(["bench", "--json", "made_up"]) == (0 if holds else 1)
    assert json.loads(capsys.readouterr().out) == report.to_json()


def test_benchmarks_draw_their_charts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report("made_up", False, {"seconds_for_1": 5.0, "seconds_for_10": 6.0})
    monkeypatch.setattr("plait.cli.bench.BENCHMARKS", {"made_up": MadeUp(report)})
    folder = tmp_path / "new" / "charts"
    assert run(["bench", "made_up", "--charts", str(folder)]) == 0
    assert "made_up has no charts" in capsys.readouterr().err
    report.draw("time", "Time", "queries", "seconds", {"Plait": "seconds_for_{}"})
    assert run(["bench", "made_up", "--charts", str(folder), "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == report.to_json()
    assert f"wrote {folder / 'made_up-time.svg'}" in printed.err
    assert [each.name for each in folder.iterdir()] == ["made_up-time.svg"]
    assert (folder / "made_up-time.svg").read_text() == chart_svg(report.charts["time"])


def test_a_folder_that_cannot_be_made_is_noticed_before_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("plait.cli.bench.BENCHMARKS", {"made_up": None})  # would fail if it ran
    for name in ("file", "file/charts", "nul\0"):
        assert run(["bench", "made_up", "--charts", str(tmp_path / name)]) == 4
        assert "cannot make the folder" in capsys.readouterr().err
    for option in ("--json", "--output"):
        assert run(["bench", "made_up", option, str(tmp_path / "none" / "file")]) == 4
        assert f"there is no folder {tmp_path / 'none'}" in capsys.readouterr().err
