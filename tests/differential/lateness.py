"""Which rows of a stream come too late, told from the cuts that they come in.

Written from the rules and not from the product. With one file a micro-batch, cut N is batch N.

- In the database, a row is left out that is before the watermark at the start of the batch: the greatest
  event time of the batches before, less the delay.
- Spark's watermark is in whole milliseconds and is given a delay that is rounded up; a row of batch N is held
  against the watermark that batch N − 1 started with, which knows the rows up to batch N − 2. A window
  aggregate leaves the row out of every tick up to that watermark.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from tests.differential.arrivals import StoredStream

EPOCH = datetime(1970, 1, 1)


def late_for_database(stream: StoredStream) -> int:
    late, greatest_us = 0, None
    for times in _times_us(stream):
        if greatest_us is not None:
            late += sum(time < greatest_us - stream.delay_us for time in times)
        greatest_us = max([*times, *([] if greatest_us is None else [greatest_us])], default=None)
    return late


def late_for_ticks(stream: StoredStream, range_us: int, slide_us: int) -> int:
    """For an aggregate over windows that end at multiples of the slide, on Spark's own operators."""
    late = 0
    delay_ms = -(-stream.delay_us // 1000)
    known_ms = [0, 0]  # the watermarks that batches 0, 1, … start with; and the one of before them
    greatest_ms = 0
    for number, times in enumerate(_times_us(stream)):
        before_us = known_ms[number] * 1000
        for time in times:
            first_tick = time - time % slide_us + slide_us
            held = first_tick - range_us <= time  # a range below the slide leaves gaps
            late += held and number > 0 and first_tick <= before_us
        greatest_ms = max([greatest_ms, *(time // 1000 for time in times)])
        known_ms.append(max(known_ms[-1], greatest_ms - delay_ms))
    return late


def _times_us(stream: StoredStream) -> Iterator[list[int]]:
    for cut in stream.cuts:
        moments = [time for time in map(stream.time_of, cut) if time is not None and time > EPOCH]
        yield [(moment - EPOCH) // timedelta(microseconds=1) for moment in moments]
