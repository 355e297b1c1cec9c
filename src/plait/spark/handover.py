"""Hands the rows of each micro-batch over to the database: what Spark does for the database way.

Spark reads each stream once, and filters and projects it for each of the fragment's inputs, row by row. So a
row comes over once, however many inputs it goes into: with a mark `m0`, `m1`, … for each, and the values that
each wants. Beats come over in the same frame, which has no watermark: the database keeps its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from plait.batches import Batch, Outcome, Publish
from plait.catalog import Catalog
from plait.deployment.fragments import Fragment, Input
from plait.engines.incremental import IncrementalQuery
from plait.expressions.spark import to_spark
from plait.plan.nodes import Filter, Node, Project, StreamScan
from plait.spark.sources import Sources


def handover(
    fragment: Fragment, catalog: Catalog, sources: Sources, beats: Path, query: IncrementalQuery
) -> Handover:
    """The fragment's inputs, ready to be written into the query."""
    return Handover(fragment.inputs, catalog, sources, beats, query)


class Handover:
    def __init__(
        self,
        inputs: Sequence[Input],
        catalog: Catalog,
        sources: Sources,
        beats: Path,
        query: IncrementalQuery,
    ) -> None:
        self._inputs = inputs
        self._query = query
        self._streams = sorted({each.stream.lower() for each in inputs})
        united: DataFrame | None = None
        for number, stream in enumerate(self._streams):
            frame = self._read(number, stream, catalog, sources, beats)
            united = frame if united is None else united.unionByName(frame, allowMissingColumns=True)
        assert united is not None
        self.frame = united

    def process(self, frame: DataFrame, batch: Batch, publish: Publish) -> Outcome:
        """Let the database compute one batch, publish its rows and commit."""
        handed = frame.toArrow()
        rows = {
            each.plan: _marked(handed, f"m{k}")
            .select([*(f"i{k}_{column}" for column in range(len(each.plan.types))), "t"])
            .rename_columns([*(f"c{column}" for column in range(len(each.plan.types))), "t"])
            for k, each in enumerate(self._inputs)
        }
        return self._query.apply(batch, rows, self._beats(_marked(handed, "beat")), publish)

    def _beats(self, beats: pa.Table) -> dict[str, int]:
        """The greatest of each stream."""
        latest = beats.group_by("stream").aggregate([("t", "max")]).to_pylist()
        return {self._streams[row["stream"]]: row["t_max"] for row in latest}

    def _read(self, number: int, stream: str, catalog: Catalog, sources: Sources, beats: Path) -> DataFrame:
        inputs = {k: each for k, each in enumerate(self._inputs) if each.stream.lower() == stream}
        scans = {k: _chain(each.plan)[0] for k, each in inputs.items()}
        wanted = {field.name.lower() for scan in scans.values() for field in scan.columns}
        columns = [column.name for column in catalog.stream(stream).columns if column.name.lower() in wanted]
        places = {name.lower(): f"c{place}" for place, name in enumerate(columns)}
        frame = sources.rows(stream, columns, beats)
        values: list[str] = []
        for k, each in inputs.items():
            frame, names = _applied(
                frame, k, each.plan, [places[field.name.lower()] for field in scans[k].columns]
            )
            values += [f"{name} AS i{k}_{place}" for place, name in enumerate(names)]
        marks = [f"m{k}" for k in inputs]
        return frame.where(" OR ".join(["beat", *marks])).select(
            f.lit(number).alias("stream"), f.expr("unix_micros(t) AS t"), "beat", *marks, *map(f.expr, values)
        )


def _chain(plan: Node) -> tuple[StreamScan, list[Filter | Project]]:
    """The scan of an input, and what is done with its rows, in this order."""
    steps: list[Filter | Project] = []
    while not isinstance(plan, StreamScan):
        assert isinstance(plan, Filter | Project), plan.kind
        steps.append(plan)
        plan = plan.input
    return plan, steps[::-1]


def _applied(frame: DataFrame, k: int, plan: Node, names: Sequence[str]) -> tuple[DataFrame, Sequence[str]]:
    """The frame with the input's mark and its values; what the columns of these are called."""
    mark = "NOT beat"
    for number, step in enumerate(_chain(plan)[1]):
        match step:
            case Filter(_, predicate):
                mark = f"{mark} AND coalesce({to_spark(predicate, names)}, FALSE)"
            case Project(_, expressions):
                made = [f"s{k}_{number}_{place}" for place in range(len(expressions))]
                items = [f"{to_spark(e, names)} AS {name}" for e, name in zip(expressions, made, strict=True)]
                frame, names = frame.select("*", *map(f.expr, items)), made
            case _:
                assert_never(step)
    return frame.withColumn(f"m{k}", f.expr(mark)), names


def _marked(rows: pa.Table, mark: str) -> pa.Table:
    return rows.filter(pc.fill_null(rows[mark], False))
