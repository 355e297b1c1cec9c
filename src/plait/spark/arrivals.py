"""What a micro-batch brought of a stream: how many rows, up to which event time, and the bad records.

One action reads the batch once: good records are counted on the way, and only bad ones come back.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.batches import Arrived


def arrivals(records: DataFrame) -> Arrived:
    """Of records as `Sources.records` gives them."""
    observation = Observation()
    is_good = F.col("reason").isNull()
    bad = (
        records.select(
            "reason", F.when(~is_good, F.col("record")).alias("record"), F.unix_micros("t").alias("us")
        )
        .observe(
            observation,
            F.count_if(is_good).alias("rows"),
            F.max(F.when(is_good, F.col("us"))).alias("last_us"),
        )
        .where(~is_good)
        .select("reason", "record")
        .toArrow()
        .to_pylist()
    )
    counted = observation.get
    return Arrived(counted["rows"], counted["last_us"], bad)
