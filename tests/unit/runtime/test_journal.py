"""The journal: exact over batches that run again, bounded, readable by others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from plait.errors import ExternalError
from plait.runtime.journal import KEPT_BATCHES, First, Journal, Totals, read_totals


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "journal.sqlite")
    yield journal
    journal.close()


def never() -> Mapping[str, str]:
    raise AssertionError("the recorded versions are used")


def test_a_batch_that_runs_again_keeps_its_tables(journal: Journal) -> None:
    assert journal.begin(0, lambda: {"rooms": "v1"}) == {"rooms": "v1"}
    assert journal.begin(0, never) == {"rooms": "v1"}
    journal.finish(0, {"rows": 2}, {})
    assert journal.begin(0, never) == {"rooms": "v1"}, "also after it has finished: Spark may not know"
    assert journal.begin(1, lambda: {"rooms": "v2"}) == {"rooms": "v2"}
    assert journal.versions_in_use() == {"rooms": "v2"}


def test_totals_are_exact_however_often_a_batch_runs(journal: Journal) -> None:
    for _ in range(3):
        journal.begin(0, dict)
        journal.finish(0, {"rows:high": 5, "late:high:readings": 1, "rows:low": 0}, {"readings": 70})
    journal.begin(1, dict)
    totals = journal.totals()
    assert totals.batches == 1
    assert totals.counts == {"rows:high": 5, "late:high:readings": 1}
    assert totals.watermarks_us == {"readings": 70}
    assert (journal.last_begun, journal.last_finished) == (1, 0)


def test_a_failing_choice_of_versions_begins_nothing(journal: Journal) -> None:
    with pytest.raises(AssertionError):
        journal.begin(0, never)
    assert journal.last_begun is None
    assert journal.begin(0, dict) == {}


def test_it_stays_small_and_counts_on(journal: Journal, tmp_path: Path) -> None:
    for batch in range(10 * KEPT_BATCHES):
        journal.begin(batch, lambda: {"rooms": "v1"})
        journal.finish(batch, {"rows": batch, "bad": 1}, {"readings": batch})
    kept = journal._connection.execute("SELECT count(*) FROM batches").fetchall()
    assert kept == [(KEPT_BATCHES,)]
    totals = read_totals(tmp_path / "journal.sqlite")
    assert totals == journal.totals()
    assert totals.batches == 10 * KEPT_BATCHES
    assert totals.counts["rows"] == sum(range(10 * KEPT_BATCHES))
    assert totals.counts["bad"] == 10 * KEPT_BATCHES
    assert totals.watermarks_us == {"readings": 10 * KEPT_BATCHES - 1}


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    first = Journal(path)
    first.begin(0, lambda: {"rooms": "v1"})
    first.finish(0, {"rows": 1}, {})
    first.begin(1, lambda: {"rooms": "v2"})
    first.close()
    second = Journal(path)
    assert second.begin(1, never) == {"rooms": "v2"}
    assert second.totals().counts["rows"] == 1
    second.close()


def test_it_can_be_read_while_a_batch_begins(journal: Journal) -> None:
    def versions() -> Mapping[str, str]:
        assert read_totals(journal.path).batches == 0
        return {}

    journal.begin(0, versions)


def test_what_came_first_stays_the_first(journal: Journal) -> None:
    for batch, sample in ((0, "a"), (0, "b"), (1, "c")):  # batch 0 runs twice
        journal.begin(batch, dict)
        journal.finish(batch, {"failed": 2}, {}, {"failed": First(batch, 5, sample)})
    assert journal.totals().firsts == {"failed": First(0, 5, "b")}
    assert journal.totals().counts["failed"] == 4
    assert read_totals(journal.path) == journal.totals()


def test_no_journal_has_counted_nothing(tmp_path: Path) -> None:
    assert read_totals(tmp_path / "journal.sqlite") == Totals(0, {}, {})
    assert not (tmp_path / "journal.sqlite").exists()


def test_a_damaged_journal_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(ExternalError, match="cannot be used"):
        Journal(path)
    with pytest.raises(ExternalError, match="cannot be used"):
        read_totals(path)
