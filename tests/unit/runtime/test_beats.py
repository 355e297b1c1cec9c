"""Beats: whole files, numbered on over restarts, and no more of them than batches may need."""

from __future__ import annotations

from pathlib import Path

from plait.runtime.beats import END_OF_TIME_US, Beats


def contents(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(folder.iterdir())}


def test_a_beat_is_a_file(tmp_path: Path) -> None:
    Beats(tmp_path, None).write({"b": 7, "a": 5}, None)
    assert contents(tmp_path) == {"000000000.csv": "a,5\nb,7\n"}
    Beats(tmp_path, 0).write({'odd "one",': 8}, 0)
    assert contents(tmp_path)["000000001.csv"] == '"odd ""one"",",8\n'


def test_streams_end_once(tmp_path: Path) -> None:
    Beats(tmp_path, None).end(["a"])
    before = (tmp_path / "end.csv").stat()
    Beats(tmp_path, 5).end(["a"])
    assert (tmp_path / "end.csv").stat() == before
    assert contents(tmp_path) == {"end.csv": f"a,{END_OF_TIME_US}\n"}
    assert END_OF_TIME_US > 2 * 253402300800 * 10**6, "after the year 9999, with room for delays"


def test_beats_that_were_read_are_removed(tmp_path: Path) -> None:
    beats = Beats(tmp_path, None)
    for batch in range(10):
        beats.write({"a": batch}, batch)
        beats.write({"a": batch}, batch)
    assert sorted(contents(tmp_path)) == [f"{number:09d}.csv" for number in range(14, 20)]
    again = Beats(tmp_path, 20)
    again.write({"a": 30}, 22)
    assert len(contents(tmp_path)) == 7, "Spark may not have read them before it was stopped"
    again.write({"a": 31}, 23)
    assert sorted(contents(tmp_path)) == ["000000020.csv", "000000021.csv"]
