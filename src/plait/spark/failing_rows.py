"""The rows of a batch on which expressions of queries fail, as Spark reads them.

That there are any is observed on the way of the rows, if anything can fail at all. Only then is the batch
read again, and each query's conditions are applied to these rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.batches import Failed, sample_text
from plait.deployment.fragments import Result
from plait.expressions.failing import fails
from plait.expressions.spark import to_spark
from plait.sharing.failing import checks
from plait.spark.counted_rows import Counting
from plait.spark.stage_frames import StreamReader


@dataclass(frozen=True)
class _Asked:
    """What a query asks of the rows on which an expression fails, and its columns with their names."""

    query: str
    place: int
    condition: str
    columns: Mapping[str, str]


class FailingRows:
    """Watches the streams that are read for queries. To be made before a row is read."""

    def __init__(self, results: Iterable[Result], readers: Mapping[str, StreamReader]) -> None:
        self._asked: dict[str, list[_Asked]] = {}
        watched: dict[tuple[str, str], None] = {}
        for result in results:
            for place, check in enumerate(checks(result.plan)):
                key = check.scan.stream.lower()
                names = readers[key].columns_of(check.scan)
                condition = to_spark(check.condition, names)
                if result.after_us is not None:
                    condition = f"unix_micros(t) > {result.after_us} AND {condition}"
                columns = {field.name: name for field, name in zip(check.scan.columns, names, strict=True)}
                self._asked.setdefault(key, []).append(_Asked(result.query, place, condition, columns))
                watched[key, to_spark(fails(check.call), names)] = None
        for key, cause in watched:
            readers[key].counted.watch_failing(cause)

    def found(self, counting: Counting, until_us: Mapping[str, int]) -> dict[str, dict[int, Failed]]:
        """By query and the place of the check, once the batch is computed. Of some queries, only rows until a
        moment are counted."""
        found: dict[str, dict[int, Failed]] = {}
        for stream, rows in counting.failing.items():
            asking = [
                replace(each, condition=f"unix_micros(t) <= {until_us[each.query]} AND {each.condition}")
                if each.query in until_us
                else each
                for each in self._asked[stream]
            ]
            for asked, failed in _counted(rows, asking):
                found.setdefault(asked.query, {})[asked.place] = failed
        return found


def _counted(rows: DataFrame, asked: list[_Asked]) -> Iterable[tuple[_Asked, Failed]]:
    """Runs a job."""
    items = []
    for k, each in enumerate(asked):
        values = ", ".join(["unix_micros(t) AS us", *each.columns.values()])
        where = f"FILTER (WHERE {each.condition})"
        items += [
            F.expr(f"count(1) {where} AS rows{k}"),
            F.expr(f"min(struct({values})) {where} AS first{k}"),
        ]
    (counts,) = rows.agg(*items).toArrow().to_pylist()
    for k, each in enumerate(asked):
        if counts[f"rows{k}"]:
            at_us, *values = counts[f"first{k}"].values()
            row = dict(zip(each.columns, values, strict=True))
            yield each, Failed(counts[f"rows{k}"], at_us, sample_text(row))
