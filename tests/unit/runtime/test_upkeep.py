"""Files of results are merged and removed; whoever reads them finds each row once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from shutil import rmtree
from threading import Event

import duckdb
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.batches import BatchRows
from plait.catalog import Keeping, SinkKind
from plait.errors import UnsupportedError
from plait.expressions.types import INT
from plait.runtime import exchange, upkeep
from plait.runtime.caretaker import all_of
from plait.runtime.outlets import Outlet, record
from plait.runtime.results import batches, follow, shared_batches, table
from plait.runtime.results_folder import batch_files, claim, numbered, series_of
from plait.runtime.shared_results import SharedSink
from plait.runtime.sinks import FileSink
from plait.runtime.state_key import StateKey
from plait.runtime.tended import Tended
from plait.runtime.upkeep import Tending, Wish
from plait.runtime.upkeep_plan import FEW_FILES

ID = "the state"
MERGE = Keeping(merge_after_us=0)
DAY_US = 86_400_000_000


class Place:
    """A state whose fragment has committed some batches, and a folder of results."""

    def __init__(self, root: Path, *queries: str, kind: SinkKind = SinkKind.PARQUET) -> None:
        self.state, self.folder = root / "state", root / "results" / "q"
        self.commits = self.state / "fragments" / "f" / "checkpoint" / "commits"
        self.commits.mkdir(parents=True, exist_ok=True)
        names = queries or ("q",)
        first = Outlet(names[0], kind, "", self.folder, ("batch",), (INT,), len(names) > 1, {0: "f"})
        self.outlets = {name: replace(first, query=name) for name in names}
        claim(self.folder, StateKey(ID, self.state), first.owner)
        self.tending = Tending(self.state, ID)

    def publish(self, batch: int, rows: int = 3) -> None:
        """As many rows of each query, all with the batch's number; Spark commits it."""
        given = pa.table({"batch": pa.array([batch] * rows, pa.int32())})
        first, *others = self.outlets.values()
        if others:
            sink = SharedSink(self.folder, first.columns, first.types, [*self.outlets])
            sink.publish(batch, [BatchRows((name,), given) for name in self.outlets])
        else:
            FileSink(first.schema, self.folder, first.kind).publish(batch, given)
        if series_of(batch) == 0:
            (self.commits / str(batch)).touch()

    def keep(self, **keeping: Keeping) -> None:
        for name, each in keeping.items():
            self.outlets[name] = replace(self.outlets[name], keeping=each)

    def age(self, days: float, *batches: int) -> None:
        for file in batch_files(self.folder):
            if file.first in batches:
                us = NOW_US - int(days * DAY_US)
                os.utime(file.path, ns=(us * 1000, us * 1000))

    def tend(self, for_all: Keeping = MERGE, least_files: int = 2, *, is_dry: bool = False) -> Tended:
        wanted = Wish(for_all, least_files=least_files, is_dry=is_dry)
        stop = Event()
        return all_of(self.tending, self.outlets.values, wanted, stop, lambda: NOW_US)

    @property
    def files(self) -> list[str]:
        return [file.path.name for file in batch_files(self.folder)]

    def rows(self, query: str = "q") -> list[int]:
        found: list[int] = table(self.outlets[query])["batch"].to_pylist()
        return found


NOW_US = 4_000_000_000_000_000  # in a hundred years: all files are older


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "GRACE_SECONDS", 0.02)


@pytest.mark.parametrize("kind", [SinkKind.PARQUET, SinkKind.JSON])
def test_files_become_one_and_rows_keep_their_order(tmp_path: Path, kind: SinkKind) -> None:
    place = Place(tmp_path, kind=kind)
    for batch in range(6):
        place.publish(batch, rows=batch)
    before = place.rows()
    ending = "parquet" if kind is SinkKind.PARQUET else "jsonl"
    done = place.tend()
    assert (done.merged_files, done.into_files, done.removed_rows) == (4, 1, {})
    # The last batch that Spark has committed may run again after a power cut: its file stays.
    assert place.files == [f"000000001-000000004.{ending}", f"000000005.{ending}"]
    assert place.rows() == before == sorted(before)
    assert not (tmp_path / "state" / exchange.BESIDE).exists() or not any(
        (tmp_path / "state" / exchange.BESIDE).iterdir()
    )


def test_merged_files_are_merged_again_and_said_which_rows_are_of_which_batch(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for batch in range(9):
        place.publish(batch, rows=batch + 1)
        place.tend()
    assert place.files[0].startswith("000000000-")
    assert len(place.files) <= 5
    assert Counter(place.rows()) == {batch: batch + 1 for batch in range(9)}
    for after in range(-1, 9):
        unread = [
            value
            for _, rows in batches(place.outlets["q"], {0: after})
            for value in rows["batch"].to_pylist()
        ]
        assert Counter(unread) == {batch: batch + 1 for batch in range(after + 1, 9)}


def test_shared_files_stay_sorted_by_query(tmp_path: Path) -> None:
    place = Place(tmp_path, "b", "a", "c")
    for batch in range(5):
        place.publish(batch, rows=batch + 1)
    place.tend()
    merged = pq.read_table(place.folder / "000000000-000000003.parquet")
    assert merged["query"].to_pylist() == ["a"] * 10 + ["b"] * 10 + ["c"] * 10
    for name in ("a", "b", "c"):
        assert place.rows(name) == [batch for batch in range(5) for _ in range(batch + 1)]
    everything = [(outlet.query, rows.num_rows) for outlet, rows in shared_batches([*place.outlets.values()])]
    assert Counter(name for name, rows in everything for _ in range(rows)) == {"a": 15, "b": 15, "c": 15}


def test_what_spark_may_run_again_is_left_alone(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for batch in range(5):
        place.publish(batch)
    for commit in ("2", "3", "4"):
        (place.commits / commit).unlink()
    place.tend()
    place.tend(Keeping(age_us=1))
    assert place.files == [f"{batch:09d}.parquet" for batch in (1, 2, 3, 4)]
    for commit in ("1", "0"):
        (place.commits / commit).unlink()
    assert not place.tend(Keeping(age_us=1)).is_something


def test_of_a_fragment_that_is_gone_nothing_runs_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for batch in range(4):
        place.publish(batch)
    rmtree(place.state / "fragments" / "f")
    before = place.rows()
    assert place.tend().merged_files == 4
    assert place.files == ["000000000-000000003.parquet"]
    assert place.rows() == before


def test_a_batch_that_was_merged_is_not_published_again(tmp_path: Path) -> None:
    for names in (("q",), ("q", "other")):
        place = Place(tmp_path / str(len(names)), *names)
        for batch in range(5):
            place.publish(batch)
        place.tend()
        for batch in (3, 4, 5):
            place.publish(batch)
        assert Counter(place.rows()) == dict.fromkeys(range(6), 3)


def test_old_rows_go_and_are_counted(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for batch in range(6):
        place.publish(batch)
    place.age(8, 0, 1)
    place.age(6, 2, 3, 4, 5)
    week = Keeping(age_us=7 * DAY_US)
    would = place.tend(week, is_dry=True)
    assert place.rows() == sorted([*range(6)] * 3)
    done = place.tend(week)
    assert done.removed_rows == would.removed_rows == {"q": 6}
    assert done.removed_files == 2
    assert done.removed_bytes > 0
    assert place.rows() == sorted([2, 3, 4, 5] * 3)
    assert not place.tend(week).is_something


def test_merged_rows_are_as_old_as_they_were(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for batch in range(8):
        place.publish(batch)
    place.age(8, 0, 1, 2)
    place.age(6, 3, 4, 5, 6, 7)
    kept = Keeping(age_us=7 * DAY_US, merge_after_us=0)
    assert place.tend(replace(kept, age_us=100 * DAY_US)).into_files == 1
    assert place.tend(kept).removed_rows == {}, "a file goes when the last of its rows may"
    place.age(9, 7)
    assert place.tend(replace(kept, age_us=5 * DAY_US)).removed_rows == {"q": 21}
    assert place.files == ["000000007.parquet"]


def test_a_file_with_a_limit_covers_a_part_of_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for batch in range(9):
        place.publish(batch)
        place.age(20 - batch, batch)
    place.tend(Keeping(age_us=30 * DAY_US, merge_after_us=0))
    assert place.files[:2] == ["000000000-000000003.parquet", "000000004-000000007.parquet"]


def test_too_much_goes_from_its_old_end(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for batch in range(6):
        place.publish(batch)
        place.age(20 - batch, batch)
    size = sum(file.path.stat().st_size for file in batch_files(place.folder))
    done = place.tend(Keeping(size_bytes=size // 2 + 10))
    assert done.removed_rows == {"q": 9}
    assert place.rows() == sorted([3, 4, 5] * 3)


def test_a_limit_of_ones_own_is_for_ones_own_rows(tmp_path: Path) -> None:
    place = Place(tmp_path, "short", "long", "ever")
    place.keep(short=Keeping(age_us=DAY_US), long=Keeping(age_us=10 * DAY_US))
    for batch in range(5):
        place.publish(batch)
    place.age(20, 0)
    place.age(5, 1, 2)
    place.age(0.5, 3, 4)
    done = place.tend(Keeping())
    assert done.removed_rows == {"short": 9, "long": 3}
    assert Counter(place.rows("short")) == {3: 3, 4: 3}
    assert Counter(place.rows("long")) == dict.fromkeys([1, 2, 3, 4], 3)
    assert Counter(place.rows("ever")) == dict.fromkeys(range(5), 3)
    assert not place.tend(Keeping()).is_something
    # The limit for all, of age or of size, is for those without one of their own.
    place.tend(Keeping(size_bytes=1))
    assert Counter(place.rows("short")) == {3: 3, 4: 3}
    assert Counter(place.rows("ever")) == {4: 3}
    # What is merged now has all that is left. Limits that have passed hinder nothing.
    place.tend()
    assert place.files[0] == "000000001-000000002.parquet"
    assert Counter(place.rows("long")) == dict.fromkeys([1, 2, 3, 4], 3)


def test_only_the_queries_that_are_meant(tmp_path: Path) -> None:
    place = Place(tmp_path, "a", "b")
    for batch in range(4):
        place.publish(batch)
    wish = Wish(Keeping(age_us=1), queries=frozenset(["a"]))
    place.tending.once(place.outlets.values(), wish, NOW_US, Event())
    assert place.rows("a") == [3, 3, 3]
    assert Counter(place.rows("b")) == dict.fromkeys(range(4), 3)


def test_a_running_system_leaves_few_files_alone(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for batch in range(40):
        place.publish(batch)
        place.tend(least_files=FEW_FILES)
        assert len(place.files) < 24
    assert Counter(place.rows()) == dict.fromkeys(range(40), 3)


def duckdb_reader(folder: Path) -> list[int]:
    rows = duckdb.connect().execute(f"SELECT batch FROM read_parquet('{folder}/*.parquet')").fetchall()
    return [batch for (batch,) in rows]


def pandas_reader(folder: Path) -> list[int]:
    found: list[int] = pandas.read_parquet(folder)["batch"].tolist()
    return found


@pytest.mark.parametrize("read", [duckdb_reader, pandas_reader], ids=["DuckDB", "pandas"])
def test_readers_find_each_row_once_or_a_file_gone(
    tmp_path: Path, read: Callable[[Path], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "GRACE_SECONDS", 0.3)  # a reader may be put aside while it lists the folder
    place = Place(tmp_path)
    place.publish(0)
    ends = Event()
    good = 0

    def reading() -> int:
        found = 0
        while not ends.is_set():
            try:
                rows = Counter(read(place.folder))
            except (OSError, duckdb.IOException):
                continue  # it was listed, and merged before it was opened
            if not rows:
                continue  # it was listed when all of it was gone, which the grace is for
            assert rows == dict.fromkeys(range(len(rows)), 3), "all batches up to one, each once"
            found += 1
        return found

    with ThreadPoolExecutor(2) as threads:
        readers = [threads.submit(reading) for _ in range(2)]
        try:
            for batch in range(1, 31):
                place.publish(batch)
                if batch % 3 == 0:
                    place.tend()
        finally:
            ends.set()
        good = sum(reader.result() for reader in readers)
    assert good > 3
    assert Counter(read(place.folder)) == dict.fromkeys(range(31), 3)


def test_following_goes_on_while_files_are_merged(tmp_path: Path) -> None:
    place = Place(tmp_path)
    numbers = count()

    def grow() -> None:
        for number in islice(numbers, 3):
            place.publish(number)
        place.tend()

    coming = follow(place.outlets["q"], grow)
    seen = [value for rows in islice(coming, 12) for value in rows["batch"].to_pylist()]
    assert seen == sorted(seen)
    assert {*Counter(seen).values()} == {3}


def test_files_of_another_series_are_merged_by_themselves(tmp_path: Path) -> None:
    """A query that is handed over has rows of two fragments, which count their batches each by itself."""
    place = Place(tmp_path)
    for batch in range(4):
        place.publish(batch)
    place.outlets["q"] = place.outlets["q"].written_by("new", 2)
    commits = place.state / "fragments" / "new" / "checkpoint" / "commits"
    commits.mkdir(parents=True)
    for batch in range(5):
        place.publish(numbered(2, batch))
        (commits / str(batch)).touch()
    before = place.rows()
    place.tend()
    assert place.files == [
        "000000000-000000002.parquet",
        "000000003.parquet",
        "2000000000-2000000003.parquet",
        "2000000004.parquet",
    ]
    assert place.rows() == before
    # A batch that was merged has nothing to publish; one of the other series does.
    place.publish(2, rows=9)
    place.publish(4)
    assert Counter(place.rows()) == {**dict.fromkeys(before, 3), 4: 3}
    (read, _), *_ = [*batches(place.outlets["q"])][-1:]
    assert read == {0: 4, 2: numbered(2, 4)}
    place.publish(5)
    place.publish(numbered(2, 5))
    unread = [v for _, rows in batches(place.outlets["q"], read) for v in rows["batch"].to_pylist()]
    assert Counter(unread) == {5: 3, numbered(2, 5): 3}


def test_files_that_were_merged_while_all_are_read(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for batch in range(8):
        place.publish(batch)
    reading = batches(place.outlets["q"])
    seen = [next(reading) for _ in range(3)]
    place.tend()
    seen += reading
    assert Counter(v for _, rows in seen for v in rows["batch"].to_pylist()) == dict.fromkeys(range(8), 3)


def test_what_is_not_ours_is_kept_or_refused(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for batch in range(5):
        place.publish(batch)
    (place.folder / "_NOTES").write_text("keep me")
    place.tend()
    assert (place.folder / "_NOTES").read_text() == "keep me"
    (place.folder / "deeper").mkdir()
    place.publish(5)
    place.publish(6)
    place.publish(7)
    done = place.tend()
    assert "is a folder, and none of ours" in done.trouble[str(place.folder)]
    assert Counter(place.rows()) == dict.fromkeys(range(8), 3)


def test_a_file_system_that_cannot_exchange_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    for batch in range(5):
        place.publish(batch)

    def refuse(_one: Path, _other: Path) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(exchange, "_exchange", refuse)
    with pytest.raises(UnsupportedError, match="cannot be merged"):
        exchange.replaced(place.folder, place.state, (), lambda _: None)
    done = place.tend(Keeping(age_us=1, merge_after_us=0))
    assert done.removed_rows == {"q": 12}, "files can be removed all the same"
    assert len(place.files) == 1


def test_a_folder_of_another_state_is_left_alone(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for batch in range(5):
        place.publish(batch)
    place.tending = Tending(place.state, "another state")
    assert "not the folder that this state" in place.tend(Keeping(age_us=1)).trouble[str(place.folder)]
    assert len(place.files) == 5


@pytest.mark.parametrize("point", ["exchange-prepared", "exchange-made", "results-removed"])
def test_killed_in_the_middle_nothing_is_lost_or_doubled(tmp_path: Path, point: str) -> None:
    place = Place(tmp_path, "a", "b")
    place.keep(b=Keeping(age_us=1))
    for batch in range(8):
        place.publish(batch)
    place.age(1, *range(8))
    if point == "results-removed":
        place.keep(a=Keeping(age_us=1000 * DAY_US))
        place.age(2000, 0)
    record(place.state, place.outlets.values())
    program = (
        "import sys; from pathlib import Path; from threading import Event\n"
        "from plait.catalog import Keeping\nfrom plait.runtime.outlets import recorded\n"
        "from plait.runtime.upkeep import Tending, Wish\n"
        f"state = Path({str(place.state)!r})\n"
        f"Tending(state, {ID!r}).once(recorded(state).values(), "
        f"Wish(Keeping(merge_after_us=0), least_files=2), {NOW_US}, Event())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PLAIT_FAILPOINT": point}, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    first = 1 if point == "results-removed" else 0
    assert Counter(place.rows("a")) == dict.fromkeys(range(first, 8), 3)
    place.tending.clear(place.outlets.values())
    assert not list(place.state.glob(f"{exchange.BESIDE}/*"))
    place.tend()
    assert Counter(place.rows("a")) == dict.fromkeys(range(first, 8), 3)
    assert place.rows("b") == [7, 7, 7]


def test_a_link_to_the_folder_stays_a_link(tmp_path: Path) -> None:
    place = Place(tmp_path)
    real = tmp_path / "elsewhere"
    place.folder.rename(real)
    place.folder.symlink_to(real)
    for batch in range(5):
        place.publish(batch)
    place.tend()
    assert place.folder.is_symlink()
    assert place.files == ["000000000-000000003.parquet", "000000004.parquet"]
