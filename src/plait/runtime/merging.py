"""Makes one file of those of several micro-batches, or one without the rows of some queries.

Rows stay in the order in which they were published; where queries share files, they are sorted by query
first, as in every such file. Beside a merged file is an index that says how many rows of which query are of
which batch, and when they were published. So whoever has read some of the batches finds the others in it.

The time of a merged file is 1970: to whoever remembers which files it has seen (a stream of Spark's over the
folder) it is an old one, whose rows came long ago.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plait.batches import order_by
from plait.runtime.folder_names import QUERY_COLUMN as QUERY
from plait.runtime.results_folder import BatchFile, file_name
from plait.runtime.shared_results import write_sorted

INDEX = pa.schema(
    [("query", pa.string()), ("batch", pa.int64()), ("rows", pa.int64()), ("published_us", pa.int64())]
)


def read_index(file: BatchFile, owner: str | None) -> pa.Table:
    """What a file holds. `owner` is the query whose rows these are, None if several share the file."""
    if file.is_merged:
        return _table(file.index).cast(INDEX)
    published_us = file.path.stat().st_mtime_ns // 1000
    if owner is not None:
        rows = {owner: _row_count(file.path)}
    else:
        with pq.ParquetFile(file.path) as opened:
            counts = opened.read([QUERY])[QUERY].cast(pa.string()).value_counts()
        rows = {each["values"]: each["counts"] for each in counts.to_pylist()}
    entries = [
        {"query": query, "batch": file.first, "rows": rows[query], "published_us": published_us}
        for query in sorted(rows)
    ]
    return pa.Table.from_pylist(entries, INDEX)


def rows_through(file: BatchFile, query: str, batch: int) -> int:
    """How many rows of a query in a merged file are of batches up to that one."""
    index = _table(file.index)
    found = index.filter((pc.field("query") == query) & (pc.field("batch") <= batch))
    return int(pc.sum(found["rows"]).as_py() or 0)


def write_merged(
    files: Sequence[BatchFile], owner: str | None, without: Collection[str], folder: Path
) -> BatchFile:
    """Write the rows of files that follow each other to one in that folder, and its index; of a single file,
    the rows of other queries than those that are left out."""
    first, last, suffix = files[0].first, files[-1].last, files[0].path.suffix
    file = BatchFile(first, last, folder / file_name(first, last, suffix.removeprefix(".")))
    if suffix == ".parquet":
        _write(file.path, lambda out: _write_parquet(files, owner, without, out))
    else:
        _write(file.path, lambda out: out.writelines(each.path.read_bytes() for each in files))
    if len(files) == 1 and not file.is_merged:
        stat = files[0].path.stat()  # it is as old as it was
        os.utime(file.path, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
        return file
    index = pa.concat_tables([read_index(each, owner) for each in files])
    index = index.filter(pc.invert(pc.is_in(index["query"], pa.array([*without], pa.string()))))
    _write(file.index, lambda out: pq.write_table(index.sort_by([("query", "ascending")]), out))
    os.utime(file.path, (0, 0))
    return file


def _write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    with path.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def _write_parquet(
    files: Sequence[BatchFile], owner: str | None, without: Collection[str], out: IO[bytes]
) -> None:
    tables = [_table(file.path) for file in files]
    if owner is not None:
        pq.write_table(pa.concat_tables(tables), out)
        return
    rows = pa.concat_tables(table.set_column(0, QUERY, table[QUERY].cast(pa.string())) for table in tables)
    rows = rows.filter(pc.invert(pc.is_in(rows[QUERY], pa.array([*without], pa.string()))))
    whose = rows[QUERY].combine_chunks().dictionary_encode()
    names = whose.dictionary.to_pylist()
    ordered = sorted(names)
    places = {name: place for place, name in enumerate(ordered)}
    place_of = np.array([places[name] for name in names], np.int32)[whose.indices.to_numpy()]
    rows = rows.set_column(0, QUERY, pa.DictionaryArray.from_arrays(pa.array(place_of), pa.array(ordered)))
    write_sorted(rows.combine_chunks(), order_by(place_of), out)


def _table(path: Path) -> pa.Table:
    """By one core: a micro-batch may want the others."""
    with pq.ParquetFile(path) as file:
        return file.read(use_threads=False)


def _row_count(path: Path) -> int:
    if path.suffix == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    with path.open("rb") as file:
        return sum(1 for _ in file)
