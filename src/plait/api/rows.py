"""Rows of queries, evaluated or published: as tables, CSV, JSON and frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from plait.api.html import html_table
from plait.catalog import SinkKind
from plait.deployment.describe import failing_text
from plait.expressions.types import Type
from plait.quantity_text import counted
from plait.table_text import csv_text, json_value, table_text, value_text

if TYPE_CHECKING:  # loading these takes a moment, and not every call needs them
    from pathlib import Path

    import pandas
    import pyarrow as pa

    from plait.engines.result_relations import DuckDBPyConnection, DuckDBPyRelation
    from plait.evaluator import Result
    from plait.runtime.outlets import Outlet
    from plait.spark.execution import Frame as DataFrame
    from plait.spark.execution import Session as SparkSession

ROWS_SHOWN = 20


class Rows:
    """Rows of a query with their columns."""

    columns: tuple[str, ...]
    types: tuple[Type, ...]

    @property
    def rows(self) -> Sequence[tuple[Any, ...]]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def to_text(self, limit: int | None = ROWS_SHOWN, width: int | None = None) -> str:
        """A table of the first rows and, if there are more, how many."""
        shown = self.rows if limit is None else self.rows[:limit]
        numeric = {position for position, type_ in enumerate(self.types) if type_.is_numeric}
        cells = [[value_text(value) for value in row] for row in shown]
        lines = [table_text(self.columns, cells, numeric=numeric, width=width)]
        if len(shown) < len(self.rows):
            lines.append(f"… {counted(len(self.rows) - len(shown), 'more row')}")
        return "\n".join(lines)

    def to_csv(self, limit: int | None = None) -> str:
        """As `format = 'csv'` reads it: NULL is an empty field, an empty string is quoted."""
        return csv_text([self.columns, *self.rows[:limit]])

    def to_json(self, limit: int | None = None) -> dict[str, Any]:
        """Columns with their types, and the rows as lists. What JSON has no numbers for is text: decimals,
        times (`2026-01-31T12:00:00`, UTC), NaN and infinities."""
        return {
            "columns": [
                {"name": name, "type": str(type_)}
                for name, type_ in zip(self.columns, self.types, strict=True)
            ],
            "row_count": len(self.rows),
            "rows": [[json_value(value) for value in row] for row in self.rows[:limit]],
        }

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        shown = [[value_text(value) for value in row] for row in self.rows[:ROWS_SHOWN]]
        more = len(self.rows) - len(shown)
        foot = f"<p>… {counted(more, 'more row')}</p>" if more else ""
        numeric = {position for position, type_ in enumerate(self.types) if type_.is_numeric}
        return html_table(self.columns, shown, numeric) + foot


class EvaluatedRows(Rows):
    """What a query means over stored data, sorted by all columns."""

    def __init__(self, result: Result) -> None:
        self.columns, self.types = tuple(result.columns), tuple(result.types)
        self._rows = result.rows
        self.bad_records = dict(result.bad_records)
        # On how many rows of a stream an expression is NULL as there is no such value.
        self.failed = {
            (check.scan.stream, failing_text(check)): rows for check, rows in result.failed.items()
        }

    @property
    def rows(self) -> Sequence[tuple[Any, ...]]:
        return self._rows

    def to_json(self, limit: int | None = None) -> dict[str, Any]:
        failed = [{"expression": e, "stream": s, "rows": n} for (s, e), n in self.failed.items()]
        return {**super().to_json(limit), "bad_records": self.bad_records, "failed": failed}


class ResultRows(Rows):
    """What a run has published so far, in the order in which it did. It is read when it is looked at, and
    then stays as it is; DuckDB and Spark read the files themselves."""

    def __init__(
        self, columns: Sequence[str], types: Sequence[Type], read: Callable[[], pa.Table], outlet: Outlet
    ) -> None:
        self.columns = tuple(columns)
        self.types = tuple(types)
        self._read = read
        self._outlet = outlet

    @classmethod
    def of(cls, outlet: Outlet, rows: pa.Table | None = None) -> ResultRows:
        """Those of a query: these, or all that are in its files."""
        from plait.runtime.results import check_readable, table

        if rows is None:
            check_readable(outlet)
        return cls(outlet.columns, outlet.types, lambda: table(outlet) if rows is None else rows, outlet)

    @cached_property
    def _table(self) -> pa.Table:
        return self._read()

    @cached_property
    def rows(self) -> Sequence[tuple[Any, ...]]:
        from plait.runtime.arrow_rows import ArrowRows

        return ArrowRows(self._table)

    def to_arrow(self) -> pa.Table:
        return self._table

    def to_pandas(self) -> pandas.DataFrame:
        return self._table.to_pandas()

    def to_duckdb(self, connection: DuckDBPyConnection | None = None) -> DuckDBPyRelation:
        """A relation over the files: it reads what it needs of them when rows are asked for, also those that
        have come until then."""
        from plait.engines.result_relations import files_relation, table_relation

        folder = self._folder_of_files
        if folder is None:
            return table_relation(self._table, connection)
        return files_relation(folder, self.columns, self._whose, connection)

    def to_spark(self, session: SparkSession) -> DataFrame:
        """A DataFrame over the files that are there now, which are read when rows are asked for."""
        from plait.spark.result_frames import files_frame, table_frame

        folder = self._folder_of_files
        if folder is None:
            return table_frame(session, self._table)
        return files_frame(session, folder, [*self.columns], self._whose)

    @property
    def _whose(self) -> str | None:
        return self._outlet.query if self._outlet.is_shared else None

    @property
    def _folder_of_files(self) -> Path | None:
        """Where Parquet files are that others can read: there is none before the first row."""
        from plait.runtime.results_folder import batch_files

        folder = self._outlet.folder
        if folder is None or self._outlet.kind is not SinkKind.PARQUET or not batch_files(folder):
            return None
        return folder
