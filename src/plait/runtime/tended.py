"""What was done for the results of a run (`plait.runtime.upkeep`), as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tended:
    """What was done, or would be. `removed_bytes` are those of the files that were removed. `trouble` says
    why something could not be done, by folder."""

    merged_files: int = 0
    into_files: int = 0
    removed_files: int = 0
    removed_bytes: int = 0
    removed_rows: Counter[str] = field(default_factory=Counter)
    trouble: dict[str, str] = field(default_factory=dict)

    @property
    def is_something(self) -> bool:
        return bool(self.into_files or self.removed_files or self.removed_rows)

    def add(self, other: Tended) -> None:
        self.merged_files += other.merged_files
        self.into_files += other.into_files
        self.removed_files += other.removed_files
        self.removed_bytes += other.removed_bytes
        self.removed_rows.update(other.removed_rows)
        self.trouble = other.trouble

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Tended:
        return cls(**{**entry, "removed_rows": Counter(entry["removed_rows"])})

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "removed_rows": dict(sorted(self.removed_rows.items()))}
