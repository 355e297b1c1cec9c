"""`plait generate`: files that hold the generator's rows, in every format, or a clear refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

import plait
from plait.cli import generate, run
from plait.generators import GENERATORS

EXAMPLES = Path(__file__).parents[2] / "examples"
BIDS = ["generate", "auctions.bids", "--from", "2026-03-02 06:00", "--to", "2026-03-02 06:02:30"]

COUNT = """
CREATE STREAM bids (auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, at TIMESTAMP,
                    WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH ({source});
CREATE CONTINUOUS QUERY everything AS SELECT auction, bidder, price, channel, at FROM bids;
"""
GENERATED = (
    "connector = 'generator', generator = 'auctions.bids', seed = 3, rate = 30, "
    "start = '2026-03-02 06:00:00', end = '2026-03-02 06:02:30'"
)


@pytest.mark.parametrize("file_format", ["parquet", "csv", "json"])
def test_files_hold_the_rows_of_the_stream(
    file_format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--rate", "30", "--seed", "3", "--format", file_format, "--output", str(tmp_path)]
    assert run([*BIDS, *options]) == 0
    assert f"{tmp_path}/bids: 4,500 rows in 3 files" in capsys.readouterr().err
    files = sorted(file.name for file in (tmp_path / "bids").iterdir())
    assert files == [f"20260302T060{minute}00.000000.{file_format}" for minute in range(3)]
    stored = f"connector = 'files', path = 'bids', format = '{file_format}', start = '2026-03-02 06:00:00'"
    written, generated = (
        list(plait.open_text(COUNT.format(source=source), base=tmp_path).evaluate("everything"))
        for source in (stored, GENERATED)
    )
    assert len(written) > 4000  # some rows lag to before the start
    assert written == generated


def test_all_generated_streams_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--file-every", "1 hour", "--output", str(tmp_path / "made")]
    assert run(["generate", str(EXAMPLES / "auction_live.sql"), *options]) == 0
    assert [line.rsplit("/", 1)[1] for line in capsys.readouterr().err.splitlines()] == [
        "persons: 150 rows in 1 file",
        "auctions: 450 rows in 1 file",
        "bids: 6,900 rows in 1 file",
    ]


def test_files_begin_at_whole_intervals(tmp_path: Path) -> None:
    times = ["--from", "2026-03-02 06:00:07", "--to", "2026-03-02 06:00:23", "--file-every", "10 s"]
    assert run(["generate", "airline.flights", *times, "--output", str(tmp_path)]) == 0
    names = sorted(file.name for file in (tmp_path / "flights").iterdir())
    assert [name[9:15] for name in names] == ["060007", "060010", "060020"]


def test_intervals_without_rows_have_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*BIDS, "--rate", "1/h", "--output", str(tmp_path)]) == 0
    assert "1 row in 1 file" in capsys.readouterr().err
    assert len(list((tmp_path / "bids").iterdir())) == 1


def test_the_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in GENERATORS)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["generate"], "usage", "what to generate is not said"),
        (BIDS, "usage", "where to is not said"),
        (["generate", "auctions.bid", "--output", "x"], "unknown-generator", "did you mean `auctions.bids`?"),
        (["generate", "none.sql", "--output", "x"], "", "none.sql"),
        (
            ["generate", str(EXAMPLES / "traffic.sql"), "--output", "x"],
            "no-generators",
            "no stream from",
        ),
        (["generate", "auctions.bids", "--output", "x"], "generated-interval", "add --from"),
        ([*BIDS[:4], "--output", "x"], "generated-interval", "add --to"),
        ([*BIDS, "--to", "2026-03-02 05:00", "--output", "x"], "generated-interval", "ends before it begins"),
        ([*BIDS, "--from", "yesterday", "--output", "x"], "usage", "`yesterday` is no time"),
        ([*BIDS, "--from", "2026-03-02 05:00+02:00", "--output", "x"], "usage", "without a zone"),
        ([*BIDS, "--rate", "0.0000001", "--output", "x"], "generator-rate", "makes no 1e-07 rows a second"),
        ([*BIDS, "--rate", "many", "--output", "x"], "usage", "many"),
        ([*BIDS, "--file-every", "1 ms", "--output", "x"], "too-many-files", "--file-every '1 hour'"),
        ([*BIDS, "--file-every", "0 s", "--output", "x"], "usage", "file-every"),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    code: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    shown = capsys.readouterr().err
    assert f"error[{code}" in shown
    assert words in shown
    assert not list(tmp_path.rglob("*.parquet"))


def test_rows_are_not_mixed_with_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--rate", "1", "--output", str(tmp_path)]
    assert run([*BIDS, *options]) == 0
    before = sorted((tmp_path / "bids").iterdir())
    assert run([*BIDS, *options, "--seed", "9"]) == 2
    assert "error[output-folder]" in capsys.readouterr().err
    assert sorted((tmp_path / "bids").iterdir()) == before


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run([*BIDS, "--output", str(tmp_path / "file")]) == 4
    assert "external[output]" in capsys.readouterr().err


def test_a_draft_is_left_neither_by_success_nor_by_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(generate._WRITERS, "csv", full)
    assert run([*BIDS, "--format", "csv", "--output", str(tmp_path)]) == 4
    assert "No space left on device" in capsys.readouterr().err
    assert not list((tmp_path / "bids").iterdir())
