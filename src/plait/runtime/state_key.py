"""Which state something belongs to, and whether that is still there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from plait.runtime.lock import is_locked

MANIFEST = "plait-state.json"
LOCK = "lock"


@dataclass(frozen=True)
class StateKey:
    """A state, and the folder that it is kept in."""

    id: str
    path: Path


def is_kept(state: StateKey) -> bool:
    """Whether a state is where it was, or somebody is about to begin one there."""
    try:
        return str(json.loads((state.path / MANIFEST).read_bytes())["id"]) == state.id
    except FileNotFoundError:
        return is_locked(state.path / LOCK)
    except (OSError, ValueError, KeyError, TypeError):
        return True  # what cannot be read may be it
