"""Reads published results, of a running system too: complete files only, nothing locked, nothing written.

Where the results of each query are, and what their columns are, stands in the manifest of the state folder,
under `results`: a run writes it there with `outlet_of`, before the first batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plait.catalog import SinkKind
from plait.errors import ExternalError, UserError, closest
from plait.expressions.arrow import arrow_schema
from plait.expressions.types import Type, parse_type
from plait.runtime.results_folder import BatchFile, batch_files
from plait.runtime.sinks import destination, folder_of
from plait.workload import Query

MANIFEST = "plait-state.json"
DEFAULT_STATE = Path("plait-state")


@dataclass(frozen=True)
class Outlet:
    """Where the rows of a query come out: `folder` if they are files of ours, and in words in any case."""

    query: str
    kind: SinkKind
    destination: str
    folder: Path | None
    columns: tuple[str, ...]
    types: tuple[Type, ...]

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.columns, self.types)

    def batches(self, after: int = -1) -> Iterator[tuple[int, pa.Table]]:
        """The rows of each published batch after that one, in their order."""
        for file in batch_files(self._readable, after):
            yield file.batch_id, self._read(file)

    def table(self) -> pa.Table:
        """All rows so far, batch by batch."""
        return pa.concat_tables([self.schema.empty_table(), *(rows for _, rows in self.batches())])

    def follow(self, wait: Callable[[], object]) -> Iterator[pa.Table]:
        """The rows of each batch, once, now and when they come; `wait` is called when there are none.

        Batches are published one after the other, so none appears before one that was seen.
        """
        last = -1
        while True:
            for batch_id, rows in self.batches(after=last):
                last = batch_id
                yield rows
            wait()

    @property
    def _readable(self) -> Path:
        if self.folder is None:
            raise UserError(
                "results-elsewhere",
                f"the rows of `{self.query}` go to {self.destination}",
                hint="Plait reads results that are files: leave `sink` out, or use sink = 'json'",
            )
        return self.folder

    def _read(self, file: BatchFile) -> pa.Table:
        try:
            if file.path.suffix == ".parquet":
                with pq.ParquetFile(file.path) as parquet:
                    return parquet.read().cast(self.schema)
            return self._parsed(file.path.read_text(encoding="utf-8"))
        except OSError as error:
            reason = error.strerror or str(error)
        except (pa.ArrowException, ValueError, KeyError, ArithmeticError) as error:
            reason = str(error)
        raise ExternalError(
            "results", f"cannot read {file.path}", detail=reason, hint="was it changed by something else?"
        )

    def _parsed(self, lines: str) -> pa.Table:
        objects = [json.loads(line) for line in lines.splitlines()]
        columns = [
            _column([each[name] for each in objects], field.type)
            for name, field in zip(self.columns, self.schema, strict=True)
        ]
        return pa.table(columns, schema=self.schema)

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "sink": self.kind,
            "destination": self.destination,
            "folder": None if self.folder is None else str(self.folder),
            "columns": list(self.columns),
            "types": [str(type_) for type_ in self.types],
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Outlet:
        return cls(
            str(entry["query"]),
            SinkKind(entry["sink"]),
            str(entry["destination"]),
            None if entry["folder"] is None else Path(entry["folder"]),
            tuple(map(str, entry["columns"])),
            tuple(map(parse_type, entry["types"])),
        )


def _column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Values as JSON has them (`plait.table_text.json_value`), as Arrow's again."""
    if pa.types.is_decimal(type_):
        return pa.array([None if value is None else Decimal(value) for value in values], type_)
    if pa.types.is_date(type_):
        return pa.array([None if value is None else date.fromisoformat(value) for value in values], type_)
    if pa.types.is_floating(type_):
        return pa.array([None if value is None else float(value) for value in values], type_)
    if pa.types.is_timestamp(type_):
        # Numpy also reads the year 10000, in which windows may end.
        return pa.array(np.array(values, dtype="datetime64[us]"), type_)
    return pa.array(values, type_)


def outlet_of(query: Query, results: Path) -> Outlet:
    """Where the rows of a query come out; `results` is the folder of those that name none."""
    kind = query.sink.kind
    folder = folder_of(query, results).absolute() if kind.writes_files else None
    return Outlet(query.name, kind, destination(query, results), folder, query.columns, query.plan.types)


def outlets(state: Path, results: Path | None = None) -> Mapping[str, Outlet]:
    """The outlets of all queries of a state folder, by key. `results` says where the results are now, if
    they were moved there since."""
    manifest = state / MANIFEST
    try:
        entries = json.loads(manifest.read_bytes())["results"]
        found = {str(key): Outlet.from_json(entry) for key, entry in entries.items()}
    except FileNotFoundError:
        raise UserError(
            "no-state",
            f"{state} is no state folder of Plait",
            hint="name the one that `plait run` was given with --state DIR",
        ) from None
    except OSError as error:
        raise ExternalError("state-folder", f"cannot read {manifest}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UserError(
            "state-damaged",
            f"{manifest} does not say where results are",
            hint="was it written by another version of Plait?",
        ) from None
    return found if results is None else {key: _moved(each, results / key) for key, each in found.items()}


def outlet(state: Path, query: str, results: Path | None = None) -> Outlet:
    """The outlet of one query, whatever the case of its name."""
    found = outlets(state, results)
    if query.lower() not in found:
        names = [each.query for each in found.values()]
        raise UserError(
            "unknown-query", f"there is no query `{query}` in {state}", hint=closest(query, names)
        )
    return found[query.lower()]


def _moved(outlet: Outlet, folder: Path) -> Outlet:
    if outlet.folder is None or not folder.is_dir():
        return outlet
    return replace(outlet, folder=folder, destination=str(folder))
