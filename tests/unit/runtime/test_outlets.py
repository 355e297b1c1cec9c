"""Where rows come out: in words, in the state folder, and when a run goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.workloads.single_queries import outlet_of, result_of

from plait.catalog import Catalog, Keeping, Sink, SinkKind
from plait.deployment.fragments import Fragment, Way
from plait.errors import UserError
from plait.expressions.types import BIGINT, INT
from plait.plan.nodes import Field, StreamScan
from plait.runtime import results_folder
from plait.runtime.outlets import Outlet, check_places, find, guarantee, outlets_of, record, recorded
from plait.runtime.state_key import StateKey
from plait.workload import Query, Workload

STATE = "state-1"


def query(sink: Sink | None = None, name: str = "Rooms") -> Query:
    return Query(name, StreamScan("s", (Field("plug", INT),)), ("plug",), sink=sink or Sink())


def begin(state: Path, results: Path) -> None:
    """As a run does: claim the folder, write down where it is, publish."""
    state.mkdir()
    results_folder.claim(results / "rooms", StateKey(STATE, results.parent), "Rooms")
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
    outlet = outlet_of(query(sink), Path("results"))
    assert outlet.destination == place
    assert guarantee(sink) == promise
    assert outlet.words(sink) == f"results go to {place}: {promise}"


def test_the_folder_of_a_query_is_in_lower_case_or_its_own() -> None:
    assert outlet_of(query(), Path("/results")).folder == Path("/results/rooms")
    assert outlet_of(query(Sink(target="/into")), Path("/results")).folder == Path("/into")


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
    results_folder.claim(tmp_path / "other" / "rooms", StateKey(STATE, tmp_path / "state"), "Rooms")
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
    odd = query(name="gate 17")
    record(tmp_path, [outlet_of(odd, tmp_path / "results")])
    moved = outlet_of(odd, tmp_path / "moved").folder
    assert moved is not None
    moved.mkdir(parents=True)
    assert find(tmp_path, "Gate 17", tmp_path / "moved").folder == moved


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


# Queries that run together


def together(results: Path, *queries: Query, name: str = "shared-0") -> dict[str, Outlet]:
    fragment = Fragment(name, tuple(map(result_of, queries)), (), Way.SHARED)
    workload = Workload(Catalog(), {each.name.lower(): each for each in queries})
    return dict(outlets_of(workload, [fragment], results))


def in_shared(outlet: Outlet) -> Outlet:
    return replace(outlet, writers={0: "shared-0"})


def test_queries_with_the_same_columns_share_a_folder(tmp_path: Path) -> None:
    one, other = together(tmp_path, query(), query(name="Halls")).values()
    assert one.is_shared
    assert other.is_shared
    assert one.folder == other.folder
    assert one.folder is not None
    assert one.folder.parent == tmp_path
    assert one.folder.name.startswith("shared-0-")
    assert one.owner == other.owner == one.folder.name
    assert one.words(Sink()) == f"results go to {one.folder}, with those of other queries: exactly once"


@pytest.mark.parametrize(
    "sink", [Sink(target="/into"), Sink(SinkKind.JSON), Sink(SinkKind.CONSOLE), Sink(SinkKind.MEMORY)]
)
def test_a_query_that_names_where_its_rows_go_has_them_there(tmp_path: Path, sink: Sink) -> None:
    outlets = together(tmp_path, query(), query(name="Halls"), query(sink, "Own"))
    assert outlets["rooms"].is_shared
    assert outlets["halls"].folder == outlets["rooms"].folder
    assert outlets["own"] == in_shared(outlet_of(query(sink, "Own"), tmp_path))


def test_a_query_that_is_limited_by_its_size_has_a_folder_of_its_own(tmp_path: Path) -> None:
    limited = query(Sink(keeping=Keeping(size_bytes=10**9)), "Limited")
    aged = query(Sink(keeping=Keeping(age_us=10**9)), "Aged")
    outlets = together(tmp_path, query(), aged, limited)
    assert [outlet.is_shared for outlet in outlets.values()] == [True, True, False]
    assert outlets["aged"].keeping.age_us == 10**9
    record(tmp_path, outlets.values())
    assert recorded(tmp_path) == outlets


def test_other_columns_types_and_fragments_are_other_folders(tmp_path: Path) -> None:
    queries = [
        Query(f"{column}_{type_}_{number}".lower(), StreamScan("s", (Field("plug", type_),)), (column,))
        for column, type_ in (("plug", INT), ("hall", INT), ("plug", BIGINT))
        for number in range(2)
    ]
    found = [
        *together(tmp_path, *queries).values(),
        *together(tmp_path, *queries, name="shared-1").values(),
    ]
    assert all(outlet.is_shared for outlet in found)
    assert len({outlet.folder for outlet in found}) == 6


def test_a_query_whose_columns_no_other_has_keeps_its_own_folder(tmp_path: Path) -> None:
    halls = Query("Halls", StreamScan("s", (Field("plug", INT),)), ("hall",))
    into = query(Sink(target="/into"), "Own")
    outlets = together(tmp_path, query(), halls, into)
    assert outlets["rooms"] == in_shared(outlet_of(query(), tmp_path))
    assert outlets["halls"] == in_shared(outlet_of(halls, tmp_path))


def test_a_column_named_query_leaves_a_query_its_own_folder(tmp_path: Path) -> None:
    named = Query("Named", StreamScan("s", (Field("plug", INT),)), ("Query",))
    also = Query("Also", StreamScan("s", (Field("plug", INT),)), ("Query",))
    outlet = together(tmp_path, query(), named, also)["named"]
    assert (outlet.is_shared, outlet.folder) == (False, tmp_path / "named")


def test_a_query_alone_in_a_fragment_has_its_own_folder(tmp_path: Path) -> None:
    assert together(tmp_path, query())["rooms"] == in_shared(outlet_of(query(), tmp_path))


def test_shared_folders_are_recorded_and_found_where_they_were_moved(tmp_path: Path) -> None:
    outlets = together(tmp_path / "results", query(), query(name="Halls"))
    record(tmp_path, outlets.values())
    assert dict(recorded(tmp_path)) == outlets
    folder = outlets["rooms"].folder
    assert folder is not None
    results_folder.claim(folder, StateKey(STATE, tmp_path), outlets["rooms"].owner)
    results_folder.publish(folder, "000000000.parquet", lambda file: file.write(b"rows"))
    moved = together(tmp_path / "moved", query(), query(name="Halls"))
    with pytest.raises(UserError, match="the results of `Rooms` so far are in"):
        check_places(tmp_path, STATE, moved.values())
    (tmp_path / "results").rename(tmp_path / "moved")
    assert find(tmp_path, "halls", tmp_path / "moved") == moved["halls"]
    check_places(tmp_path, STATE, moved.values())
