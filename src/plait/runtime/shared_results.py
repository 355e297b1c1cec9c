"""Results of many queries in few files: one a micro-batch for all queries whose rows have the same columns.

```
results/shared-0-5f0c2a91/        queries of one fragment with the same columns and types
  000000017.parquet               their rows of micro-batch 17, sorted by the first column, `query`
  _plait.json                     whose rows these are
```

Files are drafted and renamed as those of a single query (`results_folder`). Rows are in groups of some ten
thousand, and each group knows its first and last query: whoever reads one query skips the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plait.batches import BatchRows, order_by
from plait.expressions.arrow import arrow_schema
from plait.expressions.types import Type
from plait.runtime import results_folder
from plait.runtime.folder_names import QUERY_COLUMN as QUERY

ROW_GROUP = 50_000


class SharedSink:
    """The files of queries with the same columns."""

    def __init__(
        self, folder: Path, columns: Sequence[str], types: Sequence[Type], queries: Sequence[str]
    ) -> None:
        self.folder = folder
        self._schema = arrow_schema(columns, types)
        self._merged = results_folder.Merged(folder)
        self._names = sorted(queries)
        self._places = {name: place for place, name in enumerate(self._names)}

    def of(self, queries: Sequence[str]) -> SharedSink:
        """The same files, of these queries from now on."""
        other = copy(self)
        other._names = sorted(queries)
        other._places = {name: place for place, name in enumerate(other._names)}
        return other

    def publish(self, batch_id: int, results: Sequence[BatchRows]) -> None:
        """Write the rows of a batch."""
        parts = [self._placed(result) for result in results if result.rows.num_rows]
        if not parts or self._merged.has(batch_id):
            return
        rows = pa.concat_tables(parts).combine_chunks()
        whose = rows[QUERY].combine_chunks()
        order = order_by(whose.to_numpy())
        rows = rows.set_column(0, QUERY, pa.DictionaryArray.from_arrays(whose, pa.array(self._names)))
        name = results_folder.file_name(batch_id, batch_id, "parquet")
        results_folder.publish(self.folder, name, lambda file: write_sorted(rows, order, file))

    def _placed(self, result: BatchRows) -> pa.Table:
        """The rows, and before them the place of their query among all."""
        rows = result.rows.rename_columns(self._schema.names).cast(self._schema)
        if result.whose is None:
            (name,) = result.queries
            whose = pa.array([self._places[name]] * rows.num_rows, pa.int32())
        else:
            places = pa.array([self._places[name] for name in result.queries], pa.int32())
            whose = pc.take(places, result.whose)
        return rows.add_column(0, QUERY, whose)


def write_sorted(rows: pa.Table, order: np.ndarray[Any, Any], file: IO[bytes]) -> None:
    """Write rows in that order. Those of a group are gathered while those before them are written. Values of
    the wider types seldom repeat, and each group has all sizes of them: dictionaries and limits of these take
    time and save nothing. BIGINTs are written as differences, in as few bits as they need: half the time, and
    space."""
    narrow = [field.name for field in rows.schema if not _is_wide(field.type)]
    differences = {
        field.name: "DELTA_BINARY_PACKED" for field in rows.schema if pa.types.is_int64(field.type)
    }
    groups = [order[first : first + ROW_GROUP] for first in range(0, len(order), ROW_GROUP)]
    with (
        ThreadPoolExecutor(1) as gathering,
        pq.ParquetWriter(
            file,
            rows.schema,
            use_dictionary=narrow,
            write_statistics=narrow,
            column_encoding=differences,
        ) as writer,
    ):
        for group in gathering.map(rows.take, groups):
            writer.write_table(group)


def _is_wide(type_: pa.DataType) -> bool:
    return bool(pa.types.is_int64(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def read_shared(path: Path, query: str, schema: pa.Schema) -> pa.Table:
    """The rows of one query in a file."""
    rows = pq.read_table(path, columns=[QUERY, *schema.names], filters=[(QUERY, "==", query)])
    return rows.select(schema.names).cast(schema)


def read_all_shared(path: Path, schema: pa.Schema) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each query that has some in a file, by its name."""
    rows = pq.read_table(path)
    whose = rows[QUERY].combine_chunks().cast(pa.string())
    encoded = whose.dictionary_encode()  # in the order in which they come, which is sorted
    ends = np.searchsorted(encoded.indices.to_numpy(), np.arange(len(encoded.dictionary)), side="right")
    begin = 0
    for name, end in zip(encoded.dictionary.to_pylist(), ends.tolist(), strict=True):
        yield name, rows.slice(begin, end - begin).select(schema.names).cast(schema)
        begin = end
