"""Places where a test can end this process, without a chance to clean up.

`PLAIT_FAILPOINT=results-published:3` kills the process (SIGKILL, nothing is cleaned up) when it gets to the
failpoint `results-published` for the third time. Without the variable, reaching one costs a lookup.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from threading import Lock

VARIABLE = "PLAIT_FAILPOINT"

# Every failpoint, in the order in which a micro-batch reaches them.
FAILPOINTS = (
    "state-created",
    "change-prepared",
    "change-recorded",
    "change-made",
    "changes-settled",
    "fragment-started",
    "batch-begun",
    "table-stored",
    "results-drafted",
    "results-published",
    "database-committed",
    "bad-records-kept",
    "batch-finished",
    "beat-written",
    "exchange-prepared",
    "exchange-made",
    "results-removed",
    "stopping",
)

_reached: Counter[str] = Counter()
_lock = Lock()


def reach(name: str) -> None:
    """Die here if that is asked for."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    assert name in FAILPOINTS, name
    place, _, number = wanted.partition(":")
    if place != name:
        return
    with _lock:
        _reached[name] += 1
        if _reached[name] == int(number or 1):
            os.kill(os.getpid(), signal.SIGKILL)
