"""Rows of queries, evaluated or published: as tables, CSV, JSON and frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from plait.deployment.describe import failing_text
from plait.expressions.types import Type
from plait.quantity_text import counted
from plait.table_text import csv_text, json_value, table_text, value_text

if TYPE_CHECKING:  # loading these takes a moment, and not every call needs them
    import pandas
    import pyarrow as pa

    from plait.evaluator import Result

ROWS_SHOWN = 20


class Rows:
    """Rows of a query with their columns."""

    def __init__(
        self, columns: Sequence[str], types: Sequence[Type], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        self.columns = tuple(columns)
        self.types = tuple(types)
        self.rows = rows

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
        return html_table(self.columns, shown) + foot


class EvaluatedRows(Rows):
    """What a query means over stored data, sorted by all columns."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.columns, result.types, result.rows)
        self.bad_records = dict(result.bad_records)
        # On how many rows of a stream an expression is NULL as there is no such value.
        self.failed = {
            (check.scan.stream, failing_text(check)): rows for check, rows in result.failed.items()
        }

    def to_json(self, limit: int | None = None) -> dict[str, Any]:
        failed = [{"expression": e, "stream": s, "rows": n} for (s, e), n in self.failed.items()]
        return {**super().to_json(limit), "bad_records": self.bad_records, "failed": failed}


class ResultRows(Rows):
    """What a run has published so far, in the order in which it did."""

    def __init__(self, columns: Sequence[str], types: Sequence[Type], table: pa.Table) -> None:
        from plait.runtime.arrow_rows import ArrowRows

        super().__init__(columns, types, ArrowRows(table))
        self._table = table

    def to_arrow(self) -> pa.Table:
        return self._table

    def to_pandas(self) -> pandas.DataFrame:
        return self._table.to_pandas()


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
