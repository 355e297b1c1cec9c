"""Looks after results now: merges small files, and removes what is kept too long or is too much."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plait.catalog import Keeping
from plait.errors import UserError
from plait.language.quantities import QuantityError, parse_duration, parse_limits
from plait.runtime import DEFAULT_STATE

if TYPE_CHECKING:  # loading these takes a moment, and not every call needs them
    from plait.runtime.tended import Tended
    from plait.runtime.upkeep import Wish


def keeping(retain: str | None, compact: str | None) -> Keeping:
    """What is asked for in words, as in SQL: `7 days`, `10 GB` or both; and how old files are that are
    merged."""
    try:
        limits = (None, None) if retain is None else parse_limits(retain)
        return Keeping(*limits, None if compact is None else parse_duration(compact))
    except QuantityError as error:
        raise UserError("retention", error.message, hint=error.hint) from None


def wish(retain: str | None, older_than: str, dry_run: bool) -> Wish:
    from plait.runtime.upkeep import Wish

    return Wish(keeping(retain, older_than), least_files=2, is_dry=dry_run)


def compact(
    *queries: str,
    state: str | Path = DEFAULT_STATE,
    results: str | Path | None = None,
    older_than: str = "0 s",
    retain: str | None = None,
    dry_run: bool = False,
) -> Tended:
    """Merge small files of results, and remove what queries say they keep no longer; of some queries, or of
    all, of a system that runs or not.

    Files younger than `older_than` are left alone. `retain` is for queries that say nothing themselves. With
    `dry_run` nothing is done. `results` says where the folders are, if they were moved since.
    """
    wanted = wish(retain, older_than, dry_run)
    asked = _of_running(Path(state), queries, wanted)
    if asked is not None:
        return asked
    from plait.runtime.caretaker import tend_stopped

    return tend_stopped(Path(state), queries, wanted, None if results is None else Path(results))


def _of_running(state: Path, queries: Sequence[str], wanted: Wish) -> Tended | None:
    """What a system that runs has done; None if none does."""
    from plait.runtime.control import ask
    from plait.runtime.state import CONTROL
    from plait.runtime.tended import Tended

    try:
        request = {"do": "compact", "queries": [*queries], "wish": wanted.to_json()}
        return Tended.from_json(ask(state.absolute() / CONTROL, request))
    except UserError as error:
        if error.code != "not-running":
            raise
        return None
