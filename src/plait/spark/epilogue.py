"""The last part of a query that runs natively: ordinary batch operations on the rows of each micro-batch.

Stored tables are read here, from the copies that the batch names, so that a change between two batches is
seen, and a batch that is computed again sees what it saw before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.batches import Batch
from plait.catalog import Catalog
from plait.deployment.binary_joins import equalities
from plait.deployment.stages import EpilogueStage, FinishStage, LookupStage, Stages, TopStage
from plait.expressions.arrow import arrow_schema
from plait.expressions.nodes import Expression
from plait.expressions.spark import quoted, to_spark, type_to_spark
from plait.expressions.types import Kind
from plait.plan.nodes import (
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    Static,
    TableScan,
    Ticking,
    Top,
)
from plait.spark.executed_batch import collected
from plait.spark.frame_columns import column_names, join_type, joined_names
from plait.windows.stretches import ALWAYS, Stretch


class Epilogue:
    """From the relation that the streaming part computes to the result with these columns, of which a batch
    may give `most_rows`."""

    def __init__(
        self, stages: Stages, columns: Sequence[str], catalog: Catalog, most_rows: int | None = None
    ) -> None:
        self._most_rows = most_rows
        self._begin = stages.streaming[-1].output
        self._stages = stages.epilogue
        self._end = stages.output
        self._schema = arrow_schema(columns, self._end.types)
        self._catalog = catalog

    def handed_over(self, frame: DataFrame) -> DataFrame:
        """What a batch needs of the streaming part's frame: its columns, and the event time, or the tick, in
        microseconds."""
        items = [*column_names(self._begin), f"unix_micros({self._time}) AS {self._time}"]
        return frame.select(*map(F.expr, items))

    def table(self, rows: DataFrame, batch: Batch, gives: Stretch = ALWAYS) -> pa.Table:
        """The result's rows of a batch. Runs the batch. What is above keeps the event times of rows."""
        given = rows
        if gives != ALWAYS:
            at_us = "tick - 1" if self._time == "tick" else "t"
            given = rows.where(f"{at_us} >= {gives.from_us} AND {at_us} < {gives.until_us}")
        frame = given.select(*column_names(self._begin), *_hidden(self._begin))
        for stage in self._stages:
            frame = self._applied(stage, frame, batch)
        casts = [f"CAST(c{k} AS {type_to_spark(type_)}) AS c{k}" for k, type_ in enumerate(self._end.types)]
        table = collected(frame.selectExpr(*casts), rows, self._most_rows)
        return table.rename_columns(self._schema.names).cast(self._schema)

    @property
    def _time(self) -> str:
        return "tick" if isinstance(self._begin.timing, Ticking) else "t"

    def _applied(self, stage: EpilogueStage, frame: DataFrame, batch: Batch) -> DataFrame:
        match stage:
            case FinishStage(node):
                return _finished(node, frame)
            case TopStage(node):
                return _first(node, frame)
            case LookupStage(node):
                return self._looked_up(node, frame, batch)
            case _:
                assert_never(stage)

    def _looked_up(self, node: Join | OuterJoin, frame: DataFrame, batch: Batch) -> DataFrame:
        moving = "r" if isinstance(node.inputs[0].timing, Static) else "l"
        frames = [
            self._stored(source, frame, batch) if isinstance(source.timing, Static) else frame
            for source in node.inputs
        ]
        sides = [
            side.select(
                *(F.col(name).alias(f"{prefix}_{name}") for name in column_names(source)),
                *(F.col(name).alias(f"{prefix}_{name}") for name in _hidden(source)),
            )
            for prefix, side, source in zip("lr", frames, node.inputs, strict=True)
        ]
        if not equalities(node):
            # Else Spark may compute the rows of the batch once for each part of the table.
            stored = 1 if moving == "l" else 0
            sides[stored] = F.broadcast(sides[stored])
        names = joined_names(node)
        window_end = f"timestamp_micros({moving}_tick)" if _hidden(node) else None
        condition = F.expr(to_spark(node.predicate, names, window_end=window_end))
        return (
            sides[0]
            .join(sides[1], condition, join_type(node))
            .select(
                *(F.col(name).alias(f"c{k}") for k, name in enumerate(names)),
                *(F.col(f"{moving}_{name}").alias(name) for name in _hidden(node)),
            )
        )

    def _stored(self, node: Node, frame: DataFrame, batch: Batch) -> DataFrame:
        """A stored table as of the batch, filtered and projected."""
        match node:
            case TableScan(table, columns):
                relation = self._catalog.table(table)
                stored = frame.sparkSession.read.parquet(str(batch.tables[relation.name.lower()]))
                items = []
                for k, field in enumerate(columns):
                    item = f"CAST({quoted(field.name)} AS {type_to_spark(field.type)})"
                    # -0.0 + 0.0 is 0.0
                    items.append(
                        f"{item} + 0.0D AS c{k}" if field.type.kind is Kind.DOUBLE else f"{item} AS c{k}"
                    )
                return stored.selectExpr(*items)
            case Filter() | Project():
                return _finished(node, self._stored(node.input, frame, batch))
            case _:
                raise AssertionError(node.kind)


def _finished(node: Filter | Project, frame: DataFrame) -> DataFrame:
    if isinstance(node, Filter):
        return frame.where(_printed(node.predicate, node.input))
    items = [f"{_printed(expression, node.input)} AS c{k}" for k, expression in enumerate(node.expressions)]
    return frame.selectExpr(*items, *_hidden(node))


def _first(node: Top, frame: DataFrame) -> DataFrame:
    keys = [
        f"{_printed(key.expression, node.input)} {'DESC' if key.descending else 'ASC'} "
        f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in node.order
    ]
    ties = [f"{name} ASC NULLS FIRST" for name in column_names(node)]
    place = f"row_number() OVER (PARTITION BY tick ORDER BY {', '.join([*keys, *ties])}) AS place"
    return frame.selectExpr("*", place).where(f"place <= {node.count}").drop("place")


def _printed(expression: Expression, node: Node) -> str:
    window_end = "timestamp_micros(tick)" if _hidden(node) else None
    return to_spark(expression, column_names(node), window_end=window_end)


def _hidden(node: Node) -> list[str]:
    return ["tick"] if isinstance(node.timing, Ticking) else []
