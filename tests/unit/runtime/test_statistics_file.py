"""The time series: bounded however long it goes on, and never in the way."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from plait.runtime import statistics_file
from plait.runtime.slots import Slot, together
from plait.runtime.statistics_file import LEVELS, SLOT_SECONDS, StatisticsFile, read


def slot(rows: float) -> Slot:
    return Slot({"rows q": rows, "batches": 1}, {"kept t": rows})


def test_slots_add_up_and_the_last_of_the_others_counts() -> None:
    whole = together([slot(1), slot(5)])
    assert whole == Slot({"rows q": 6, "batches": 2}, {"kept t": 5})
    assert Slot.from_bytes(whole.to_bytes()) == whole


def test_rates_are_by_event_time() -> None:
    assert Slot({"paced s": 30, "span s": 1.5}).rate("s") == 20
    assert Slot({"paced s": 30, "span s": 0}).rate("s") is None
    assert Slot().rate("s") is None


def everything(path: Path) -> tuple[int, Slot]:
    file = StatisticsFile(path)
    rows = file._connection.execute("SELECT content FROM slots ORDER BY begin_s").fetchall()
    file.close()
    return len(rows), together(Slot.from_bytes(content) for (content,) in rows)


def test_old_slots_are_put_together_and_nothing_is_lost_within_a_week(tmp_path: Path) -> None:
    file = StatisticsFile(tmp_path / "s.sqlite")
    begin_s, hours = 1_000_000_000, 20
    for number in range(hours * 360):
        at_s = begin_s + number * SLOT_SECONDS
        file.put({(at_s, "shared-0"): slot(1)})
        if number % 60 == 0:
            file.thin(at_s)
    file.close()
    count, whole = everything(tmp_path / "s.sqlite")
    assert whole.sums == {"rows q": hours * 360, "batches": hours * 360}
    most = sum(kept_s / length_s for length_s, kept_s in LEVELS[:2]) + hours
    assert count <= most + 2 * 60 + 2  # between two thinnings, and parts of slots
    assert count < hours * 360 / 20


def test_what_is_older_than_a_week_is_dropped(tmp_path: Path) -> None:
    file = StatisticsFile(tmp_path / "s.sqlite")
    file.put({(0, "a"): slot(1), (LEVELS[-1][1], "a"): slot(2)})
    file.thin(LEVELS[-1][1] + 10)
    file.close()
    assert everything(tmp_path / "s.sqlite")[1].sums["rows q"] == 2


def test_beyond_its_greatest_size_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics_file, "MOST_BYTES", 5_000)
    file, rng = StatisticsFile(tmp_path / "s.sqlite"), random.Random(1)
    noise = {f"rows {rng.random()}": rng.random() for _ in range(50)}
    for number in range(20):
        file.put({(number * SLOT_SECONDS, "a"): Slot(dict(noise))})
    file.thin(200)
    file.close()
    slots, _ = read(tmp_path / "s.sqlite")
    assert 0 < sum(len(each.to_bytes()) for each in slots.values()) <= 5_000
    assert max(begin_s for begin_s, _ in slots) == 190


@pytest.mark.parametrize("content", [b"no database at all", b"SQLite format 3\0" + bytes(5_000)])
def test_a_damaged_file_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.sqlite"
    path.write_bytes(content)
    assert read(path) == ({}, {})
    file = StatisticsFile(path)
    file.put({(0, "a"): slot(3)})
    file.close()
    assert read(path)[0] == {(0, "a"): slot(3)}


def test_without_a_file_it_is_done_without(tmp_path: Path) -> None:
    path = tmp_path / "not there" / "s.sqlite"
    file = StatisticsFile(path)
    file.put({(0, "a"): slot(3)})
    file.close()
    assert read(path) == ({}, {})


def test_documents_are_of_what_is_there(tmp_path: Path) -> None:
    file = StatisticsFile(tmp_path / "s.sqlite")
    file.describe("query", {"a": {"x": 1}, "b": {}})
    file.forget_but("query", {"b": {}})
    file.describe("query", {"b": {"y": [2]}})
    file.close()
    assert read(tmp_path / "s.sqlite")[1] == {"query": {"b": {"y": [2]}}}
