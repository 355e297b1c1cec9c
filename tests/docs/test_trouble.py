"""The page of troubles names tests that are there, enough of them, and all that were made for it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def kinds() -> dict[str, list[tuple[str, str]]]:
    """Kinds of trouble, and the tests that show them."""
    page = (ROOT / "docs" / "trouble.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    of_five = [row for row in rows if len(row) == 5 and "shown by" not in row[-1]]
    return {f"{row[0]}: {row[1]}": TEST.findall(row[-1]) for row in of_five}


def test_there_are_many_and_each_is_shown() -> None:
    assert len(kinds()) >= 25
    assert all(kinds().values())


def test_every_test_is_there() -> None:
    for file, name in {each for tests in kinds().values() for each in tests}:
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{name}"


def test_no_trouble_is_left_out() -> None:
    named = {name for tests in kinds().values() for _, name in tests}
    made = {
        name
        for file in (ROOT / "tests" / "trouble").glob("*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    }
    assert made - named == {"test_where_there_are_small_disks"}  # runs those that need a disk
