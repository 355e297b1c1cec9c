"""`--output`: written completely or not at all, never over what is read, and never in place of a device."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plait.cli import run

ROOT = Path(__file__).parents[2]
TRAFFIC = str(ROOT / "examples" / "traffic.sql")

STREAM = """
CREATE STREAM s (x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)
  WITH (connector = 'files', path = 'data', format = 'csv', rate = 1, row_bytes = 12);
CREATE CONTINUOUS QUERY q AS SELECT x FROM s;
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.csv").write_text("x,ts\n1,2026-01-31 12:00:00\n")
    file = tmp_path / "s.sql"
    file.write_text(STREAM)
    return file


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


def test_a_result_does_not_become_data(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").symlink_to(tmp_path / "data")
    for output in (tmp_path / "data" / "new.csv", tmp_path / "elsewhere" / "new.csv"):
        assert run(["evaluate", str(file), "q", "--format", "csv", "--output", str(output)]) == 2
        assert f"{output} would be in a folder whose files are read as data" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["rows.csv"]
    beside = tmp_path / "data.csv"
    assert run(["evaluate", str(file), "q", "--format", "csv", "--output", str(beside)]) == 0


def test_what_is_read_is_not_overwritten(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link.sql").symlink_to(file)
    os.link(file, tmp_path / "hard.txt")
    rows = tmp_path / "data" / "rows.csv"
    for output in (file, tmp_path / "link.sql", tmp_path / "hard.txt", rows):
        before = output.read_bytes()
        assert run(["plan", str(file), "--output", str(output)]) == 2
        assert f"{output} is read by this command" in capsys.readouterr().err
        assert run(["evaluate", str(file), "--output", str(output)]) == 2
        assert output.read_bytes() == before
    (tmp_path / "link.sql").unlink()
    assert run(["plan", str(tmp_path), "--output", str(file)]) == 2, "a folder stands for its files"


def test_a_link_stays_a_link_and_permissions_stay(file: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "plan.txt", tmp_path / "latest"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target.name)
    assert run(["plan", str(file), "--output", str(link)]) == 0
    assert link.is_symlink()
    assert target.read_text().startswith("1 query planned")
    assert target.stat().st_mode & 0o777 == 0o600
    dangling = tmp_path / "dangling"
    dangling.symlink_to("new.txt")
    assert run(["plan", str(file), "--output", str(dangling)]) == 0
    assert (tmp_path / "new.txt").read_text() == target.read_text()


def test_links_in_a_circle(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert run(["plan", str(file), "--output", str(tmp_path / "a")]) == 4
    assert "external[output]" in capsys.readouterr().err


def test_devices_and_pipes_are_not_replaced(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for output in (pipe, Path("/dev/null")):
        assert run(["plan", str(file), "--output", str(output)]) == 2
        assert f"{output} is no file, but a device or a pipe" in capsys.readouterr().err
        assert not output.is_file()


def test_a_dash_is_standard_output(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["evaluate", str(file), "--format", "csv", "-o", "-"]) == 0
    assert capsys.readouterr().out == "x\n1\n"
    assert not (tmp_path / "-").exists()
