"""What was observed in a span of time, as numbers by name: some add up, of others the last counts.

| name | adds up to | |
|---|---|---|
| `batches`, `seconds` | micro-batches, and the time that they took | |
| `read STREAM` | rows | |
| `paced STREAM`, `span STREAM` | rows, and the seconds of event time that they brought it on | |
| `given STREAM`, `bytes STREAM` | rows that came to the database, and their bytes | |
| `in`, `made`, `out`, `seconds`, `moved OPERATOR` | what an operator did (`plait.observations`) | |
| `paced OPERATOR`, `span OPERATOR` | rows given by one of Spark's, and the seconds that they brought | |
| `paced QUERY`, `span QUERY` | rows given, and the seconds that the query's watermark moved on with them | |
| `state_rows`, `state_bytes`, `trigger_seconds` | | of the fragment, as Spark or the file says |
| `kept`, `kept_bytes`, `groups OPERATOR` | | what an operator remembers |
| `selected QUERY`, `groups QUERY` | | rows a second, and groups, of a window aggregate |
| `distinct STREAM COLUMN`, `bytes STREAM COLUMN` | | values of a column |

Rates are by event time: rows over the time that they brought a stream on. So they are the same whether a
stream is read as it comes or all at once. The first batch of a run counts for none, as nobody knows what
time it brought on.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass
class Slot:
    """One span of time of one fragment."""

    sums: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)

    def add(self, later: Slot) -> None:
        for name, value in later.sums.items():
            self.count(name, value)
        self.last |= later.last

    def count(self, name: str, value: float) -> None:
        self.sums[name] = self.sums.get(name, 0) + value

    def rate(self, name: str) -> float | None:
        """Rows a second of a stream, query or operator, if it is known how long they took to come."""
        seconds = self.sums.get(f"span {name}", 0)
        return self.sums.get(f"paced {name}", 0) / seconds if seconds > 0 else None

    def to_bytes(self) -> bytes:
        return zlib.compress(json.dumps([self.sums, self.last]).encode(), level=1)

    @classmethod
    def from_bytes(cls, content: bytes) -> Slot:
        sums, last = json.loads(zlib.decompress(content))
        return cls(sums, last)


def together(slots: Iterable[Slot]) -> Slot:
    """Several, in the order of time, as one."""
    found = Slot()
    for slot in slots:
        found.add(slot)
    return found


def by_fragment(slots: Mapping[tuple[int, str], Slot]) -> dict[str, Slot]:
    """Slots by when they begin and their fragment, those of each fragment as one."""
    found: dict[str, list[Slot]] = {}
    for begin_s, fragment in sorted(slots):
        found.setdefault(fragment, []).append(slots[begin_s, fragment])
    return {fragment: together(each) for fragment, each in found.items()}
