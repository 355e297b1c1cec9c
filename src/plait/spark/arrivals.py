"""What a micro-batch brought of a stream: how many rows, up to which event time, and the bad records.

Records are counted by an aggregation, which Spark compiles, and which needs no column but the event time of
most formats. Bad ones are rare: only if there are any is the batch read again, for them.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.batches import Arrived


def arrivals(records: DataFrame) -> Arrived:
    """Of records as `Sources.records` gives them."""
    is_good = F.col("reason").isNull()
    (counted,) = records.agg(
        F.count_if(is_good).alias("rows"),
        F.max(F.when(is_good, F.unix_micros("t"))).alias("last_us"),
        F.count("reason").alias("bad"),
    ).collect()
    bad = records.where(~is_good).select("reason", "record").toArrow().to_pylist() if counted["bad"] else []
    return Arrived(counted["rows"], counted["last_us"], bad)
