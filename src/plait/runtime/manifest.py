"""What a state folder says of itself: what it is of, how far it has come, how its queries have changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from plait.runtime.changes import Change
from plait.runtime.declarations import Declarations
from plait.runtime.settled import Origin, Settled

FORMAT = 13


class Phase(StrEnum):
    """How far the streams have come. Once they are declared to have ended, there is no way back."""

    OPEN = "open"
    DRAINING = "draining"
    DRAINED = "drained"


@dataclass(frozen=True)
class Manifest:
    """`changes` are those that were made to the set that was settled, or if none was, to the first."""

    id: str
    plait: str
    spark: str
    planner: str
    phase: Phase
    declarations: Declarations
    changes: tuple[Change, ...] = ()
    settled: Settled | None = None
    origin: Origin | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "id": self.id,
            "plait": self.plait,
            "spark": self.spark,
            "planner": self.planner,
            "phase": self.phase,
            **self.declarations.to_json(),
            "changes": [change.to_json() for change in self.changes],
            "settled": None if self.settled is None else self.settled.to_json(),
            "origin": None if self.origin is None else self.origin.to_json(),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Manifest:
        id_, plait, spark, planner = (str(document[key]) for key in ("id", "plait", "spark", "planner"))
        phase = Phase(document["phase"])
        changes = tuple(map(Change.from_json, document["changes"]))
        settled = None if document["settled"] is None else Settled.from_json(document["settled"])
        origin = None if document["origin"] is None else Origin.from_json(document["origin"])
        declarations = Declarations.from_json(document)
        return cls(id_, plait, spark, planner, phase, declarations, changes, settled, origin)
