"""Where rows come out: in words, in the state folder, and when a run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.catalog import Sink, SinkKind
from plait.errors import UserError
from plait.expressions.types import INT
from plait.plan.nodes import Field, StreamScan
from plait.runtime import results_folder
from plait.runtime.outlets import (
    check_places,
    destination,
    find,
    folder_of,
    guarantee,
    outlet_of,
    record,
    recorded,
)
from plait.workload import Query

STATE = "state-1"


def query(sink: Sink | None = None, name: str = "Rooms") -> Query:
    return Query(name, StreamScan("s", (Field("plug", INT),)), ("plug",), sink=sink or Sink())


def begin(state: Path, results: Path) -> None:
    """As a run does: claim the folder, write down where it is, publish."""
    state.mkdir()
    results_folder.claim(results / "rooms", STATE, "Rooms")
    record(state, [outlet_of(query(), results)])
    results_folder.publish(results / "rooms", "000000000.parquet", lambda file: file.write(b"rows"))


@pytest.mark.parametrize(
    ("sink", "place", "promise"),
    [
        (Sink(), "results/rooms", "exactly once"),
        (Sink(SinkKind.JSON, "/into"), "/into", "exactly once"),
        (
            Sink(SinkKind.CONSOLE),
            "the console",
            "at least once: a batch that a crash interrupts is printed again",
        ),
        (Sink(SinkKind.MEMORY), "memory", "exactly once, and gone with the run"),
        (
            Sink(SinkKind.SPARK, "/lake", "csv"),
            "Spark's csv /lake",
            "at least once: a batch that a crash interrupts is written again",
        ),
        (
            Sink(SinkKind.SPARK, None, "Delta"),
            "Spark's Delta",
            "exactly once: Delta drops a batch that it has",
        ),
    ],
)
def test_where_rows_go_and_what_holds_there(sink: Sink, place: str, promise: str) -> None:
    assert destination(query(sink), Path("results")) == place
    assert guarantee(sink) == promise


def test_the_folder_of_a_query_is_in_lower_case_or_its_own() -> None:
    assert folder_of(query(), Path("results")) == Path("results/rooms")
    assert folder_of(query(Sink(target="/into")), Path("results")) == Path("/into")


def test_the_state_says_where_results_are(tmp_path: Path) -> None:
    outlets = [outlet_of(each, tmp_path) for each in (query(), query(Sink(SinkKind.CONSOLE), "Shown"))]
    record(tmp_path, outlets)
    assert dict(recorded(tmp_path)) == {"rooms": outlets[0], "shown": outlets[1]}


def test_names_are_found_whatever_their_case_and_the_closest_is_suggested(tmp_path: Path) -> None:
    record(tmp_path, [outlet_of(query(), tmp_path)])
    assert find(tmp_path, "ROOMS").query == "Rooms"
    with pytest.raises(UserError) as raised:
        find(tmp_path, "romms")
    assert raised.value.hint == "did you mean `Rooms`?"


def test_going_on_in_other_folders_is_refused(tmp_path: Path) -> None:
    begin(tmp_path / "state", tmp_path / "results")
    results_folder.claim(tmp_path / "other" / "rooms", STATE, "Rooms")
    with pytest.raises(UserError) as raised:
        check_places(tmp_path / "state", STATE, [outlet_of(query(), tmp_path / "other")])
    assert raised.value.code == "results-elsewhere"
    assert f"--results {tmp_path / 'results'}" in raised.value.hint


def test_going_on_in_the_same_or_in_moved_folders(tmp_path: Path) -> None:
    begin(tmp_path / "state", tmp_path / "results")
    check_places(tmp_path / "state", STATE, [outlet_of(query(), tmp_path / "results")])
    (tmp_path / "results").rename(tmp_path / "moved")
    assert find(tmp_path / "state", "rooms", tmp_path / "moved").folder == tmp_path / "moved" / "rooms"
    moved = [outlet_of(query(), tmp_path / "moved")]
    check_places(tmp_path / "state", STATE, moved)
    record(tmp_path / "state", moved)
    assert find(tmp_path / "state", "rooms").folder == tmp_path / "moved" / "rooms"


def test_the_moved_folder_of_a_name_that_is_no_name_of_a_folder(tmp_path: Path) -> None:
    results = tmp_path / "moved"
    odd = query(name="gate 17")
    record(tmp_path, [outlet_of(odd, tmp_path / "results")])
    folder_of(odd, results).mkdir(parents=True)
    assert find(tmp_path, "Gate 17", results).folder == folder_of(odd, results)


def test_without_rows_results_may_go_elsewhere(tmp_path: Path) -> None:
    for results in ("one", "two"):
        found = [outlet_of(query(), tmp_path / results)]
        check_places(tmp_path, STATE, found)
        record(tmp_path, found)
    assert find(tmp_path, "rooms").folder == tmp_path / "two" / "rooms"


@pytest.mark.parametrize(
    ("content", "code"), [(None, "no-state"), ("{", "state-damaged"), ('{"rooms": 1}', "state-damaged")]
)
def test_no_state_or_a_damaged_one(tmp_path: Path, content: str | None, code: str) -> None:
    if content is not None:
        (tmp_path / "results.json").write_text(content)
    with pytest.raises(UserError) as raised:
        recorded(tmp_path)
    assert raised.value.code == code
