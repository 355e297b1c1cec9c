"""Continuous queries on Spark without Plait: each a StreamingQuery of its own, as its documentation says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)
from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class PlainQuery:
    """`frame` makes the streaming frame of its results."""

    name: str
    frame: Callable[[SparkSession], DataFrame]


def read_files(session: SparkSession, folder: Path, columns: str, delay_s: int) -> DataFrame:
    """A stream of Parquet files, one a micro-batch, with the event time `at`. Its columns are declared, as
    they are for Plait: to find them out would take time for each stream of each query."""
    rows = session.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return rows.withWatermark("at", f"{delay_s} seconds")


def sums_in_windows(
    session: SparkSession, folder: Path, columns: str, range_s: int, slide_s: int
) -> DataFrame:
    """Sum and count for each plug. Windows end at multiples of the slide."""
    sizes = (f"{seconds} seconds" for seconds in (range_s, slide_s, -range_s % slide_s))
    grouped = read_files(session, folder, columns, 0).groupBy(F.window("at", *sizes).alias("w"), "plug")
    sums = grouped.agg(F.sum("watts").alias("total"), F.count("*").alias("n"))
    return sums.select(F.col("w.end").alias("window_end"), "plug", "total", "n")


def gate_rows(
    session: SparkSession,
    folder: Path,
    columns: Mapping[str, str],
    bounds: tuple[int, int] | None,
    range_s: int,
    delay_s: int,
) -> DataFrame:
    """Flights, all or those from the first to the last, with the bags and check-ins that are there with them.
    Both are filtered as the flights are. `columns` are by stream."""

    def stream(name: str, number: str) -> DataFrame:
        rows = read_files(session, folder / name, columns[name], delay_s)
        rows = rows if bounds is None else rows.where(F.col(number).between(*bounds))
        return rows.select(*(F.col(column).alias(f"{name}_{column}") for column in rows.columns))

    def meet(one: str, other: str) -> str:
        stay = f"INTERVAL {range_s} SECONDS"
        return f"{other}_at < {one}_at + {stay} AND {one}_at < {other}_at + {stay}"

    flights, bags, checkins = (
        stream("flights", "num"),
        stream("baggage", "flight"),
        stream("checkins", "flight"),
    )
    pairs = flights.join(bags, F.expr(f"flights_num = baggage_flight AND {meet('flights', 'baggage')}"))
    # Spark takes one event time for each input of a join: the bag's becomes a number.
    pairs = pairs.selectExpr(
        "flights_num", "flights_gate", "flights_at", "baggage_status", "unix_micros(baggage_at) AS bag_us"
    )
    both = f"{meet('flights', 'checkins')} AND abs(unix_micros(checkins_at) - bag_us) < {range_s * 1_000_000}"
    triples = pairs.join(checkins, F.expr(f"flights_num = checkins_flight AND {both}"))
    return triples.selectExpr(
        "flights_num AS num", "flights_gate AS gate", "baggage_status AS bag", "checkins_status AS passenger"
    )


def run_plain_queries(
    queries: Sequence[PlainQuery], session: SparkSession, folder: Path, *, together: bool
) -> None:
    """All of them to the end of the data that is there."""
    running = []
    for query in queries:
        running.append(_started(query, session, folder))
        if not together:
            running[-1].awaitTermination()
    for each in running:
        each.awaitTermination()


def _started(query: PlainQuery, session: SparkSession, folder: Path) -> StreamingQuery:
    results = folder / "results" / query.name
    results.mkdir(parents=True)
    return (
        query.frame(session)
        .writeStream.outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoints" / query.name))
        .foreachBatch(partial(_write, results))
        .trigger(availableNow=True)
        .start()
    )


def run_without_work(session: SparkSession, folder: Path, columns: str, checkpoints: Path) -> None:
    """A stream of Parquet files, of which nothing is read."""
    writer = read_files(session, folder, columns, 0).writeStream.foreachBatch(lambda *_: None)
    placed = writer.option("checkpointLocation", str(checkpoints))
    placed.trigger(availableNow=True).start().awaitTermination()


def _write(folder: Path, frame: DataFrame, batch: int) -> None:
    rows = frame.toArrow()
    if rows.num_rows:
        pq.write_table(rows, folder / f"{batch:09d}.parquet")
