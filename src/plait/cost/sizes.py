"""Rates and sizes of every derived stream, bottom-up: the source-driven estimates of the federation
paper.

| paper | here | of |
|---|---|---|
| λ | `rate_rows_per_s` | what leaves the operator as a stream |
| W | `relation_rows` | rows in the relation at one instant |
| l | `evaluations_per_s` | ticks |
| f | `selectivity.selectivity` | predicates |
| g | groups | aggregates |

Eq. 1, select and project: λ_out = f λ_in, and W_out = f W_in.

Eq. 2, join: λ_out = λ_L f W_R + λ_R f W_L, with one f for the pair. For n inputs λ_out = f Σ_i λ_i
Π_{j≠i} W_j and W_out = f Π W_i, which is what binary joins give in any order. A stored table has W = its
rows and no λ: its changes join nothing by themselves.

Eq. 3, aggregate: λ_out = l g, with l = 1/slide (λ/m for a row window that slides by m rows) and g the
lesser of the combinations of keys and the rows there are.

What was observed while running counts more than all of these: where the rows of a sub-plan were counted, they
are λ, and W follows in proportion.

We deviate in one point. The paper counts what one more input row adds to a join's relation; a join or
projection that is evaluated at every tick gives its whole relation at every tick, as our queries mean it.
So everything that ticks has λ = l W, of which Eq. 3 is the case W = g.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from plait.catalog import Catalog
from plait.cost.bounds import LARGEST, bounded, product
from plait.cost.selectivity import (
    ColumnEstimate,
    Evidence,
    distinct_values,
    narrowed,
    selectivity,
)
from plait.expressions.nodes import Column, Expression
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    RangeWindow,
    RowTicking,
    RowWindow,
    Static,
    StreamScan,
    TableScan,
    Ticking,
    TickWindow,
    Top,
    Union,
    Window,
    Windowed,
)
from plait.plan.signature import signature
from plait.space import relation_of, whole_scan
from plait.statistics import Assumption, Basis, Estimate, Known, StatisticsOracle, type_bytes

MICROSECONDS = 1_000_000
EVENT_TIME_BYTES = 8.0  # travels with every derived row, selected or not


@dataclass(frozen=True)
class Size:
    """A derived stream in numbers. `evaluations_per_s` is 0 for what does not tick."""

    rate_rows_per_s: float
    relation_rows: float
    evaluations_per_s: float
    columns: tuple[ColumnEstimate, ...]
    row_bytes: float
    basis: Basis
    assumptions: frozenset[Assumption]

    @property
    def bytes_per_s(self) -> float:
        return self.rate_rows_per_s * self.row_bytes


class Sizes:
    """Sizes of plan nodes, each computed once."""

    def __init__(self, catalog: Catalog, statistics: StatisticsOracle, table_refresh_s: float) -> None:
        self._catalog = catalog
        self._known = Known(statistics)
        self._table_refresh_s = table_refresh_s
        self._sizes: dict[Node, Size] = {}

    def of(self, node: Node) -> Size:
        size = self._sizes.get(node)
        if size is None:
            size = self._sizes[node] = self._as_observed(node, self._compute(node))
        return size

    def _as_observed(self, node: Node, size: Size) -> Size:
        """With the rate that was observed of the same sub-plan, if it was."""
        if isinstance(node, StreamScan | TableScan | Window):
            return size
        observed = self._known.derived_rate(signature(node))
        if observed is None:
            return size
        rate = bounded(observed.value)
        rows = size.relation_rows
        if size.evaluations_per_s:
            rows = rate / size.evaluations_per_s
        elif size.rate_rows_per_s:
            rows *= rate / size.rate_rows_per_s
        return replace(
            size,
            rate_rows_per_s=rate,
            relation_rows=bounded(rows),
            basis=observed.basis,
            assumptions=frozenset(),
        )

    def source(self, node: StreamScan | TableScan) -> Size:
        """The whole stream or table that a scan reads."""
        return self.of(whole_scan(node, self._catalog))

    def _compute(self, node: Node) -> Size:
        match node:
            case StreamScan() | TableScan():
                return self._scan(node)
            case Window():
                return self._window(node)
            case Filter(input_, predicate):
                size, evidence = self.of(input_), Evidence()
                share = selectivity(predicate, size.columns, evidence)
                return _derived(
                    node,
                    evidence,
                    [size],
                    rate_rows_per_s=share * size.rate_rows_per_s,
                    relation_rows=share * size.relation_rows,
                    columns=narrowed(predicate, size.columns),
                )
            case Project(input_, expressions):
                size = self.of(input_)
                columns = tuple(_projected(expression, size.columns) for expression in expressions)
                return _derived(
                    node,
                    Evidence(),
                    [size],
                    rate_rows_per_s=size.rate_rows_per_s,
                    relation_rows=size.relation_rows,
                    columns=columns,
                )
            case Join():
                return self._join(node)
            case OuterJoin():
                return self._outer_join(node)
            case Aggregate():
                return self._aggregate(node)
            case Top(input_, _, count):
                size = self.of(input_)
                return _ticking(node, Evidence(), [size], min(float(count), size.relation_rows), size.columns)
            case Union(inputs):
                sizes = [self.of(each) for each in inputs]
                return _derived(
                    node,
                    Evidence(),
                    sizes,
                    rate_rows_per_s=sum(size.rate_rows_per_s for size in sizes),
                    relation_rows=sum(size.relation_rows for size in sizes),
                    columns=tuple(_widest(same) for same in zip(*(s.columns for s in sizes), strict=True)),
                )
            case _:
                assert_never(node)

    def _scan(self, node: StreamScan | TableScan) -> Size:
        evidence = Evidence()
        relation = relation_of(node, self._catalog)
        table_rows = None
        if isinstance(node, StreamScan):
            rate = evidence.use(self._known.rate_rows_per_s(self._catalog.stream(node.stream)))
        else:
            table_rows = bounded(evidence.use(self._known.rows(self._catalog.table(node.table))))
            rate = table_rows / self._table_refresh_s
        natural_bytes = sum(type_bytes(column.type) for column in relation.columns)
        row_bytes = bounded(evidence.use(self._known.row_bytes(relation)))
        columns = tuple(
            _source_column(
                self._known.distinct(relation, field.name),
                type_bytes(field.type) * row_bytes / natural_bytes if natural_bytes else 0.0,
                table_rows,
            )
            for field in node.columns
        )
        if len(columns) < len(relation.columns):
            event_time_bytes = EVENT_TIME_BYTES if table_rows is None else 0.0
            row_bytes = sum(column.bytes for column in columns) + event_time_bytes
        assumptions = frozenset(evidence.assumptions)
        return Size(bounded(rate), table_rows or 0.0, 0.0, columns, row_bytes, evidence.basis, assumptions)

    def _window(self, node: Window) -> Size:
        size = self.of(node.input)
        columns, evaluations_per_s = size.columns, 0.0
        rate = size.rate_rows_per_s
        match node.window:
            case RangeWindow(range_us):
                rows = rate * range_us / MICROSECONDS
            case TickWindow(range_us, slide_us, _):
                rows = rate * range_us / MICROSECONDS
                evaluations_per_s = MICROSECONDS / slide_us
                rate = evaluations_per_s * rows
            case RowWindow(count, slide_rows, partition):
                rows = float(count)
                evaluations_per_s = rate / slide_rows
                rate = evaluations_per_s * rows
                # A partitioned window holds the rows of one partition: its columns have one value in it.
                columns = tuple(
                    ColumnEstimate(1.0, column.bytes, column.basis, column.assumptions)
                    if index in partition
                    else column
                    for index, column in enumerate(columns)
                )
            case _:
                assert_never(node.window)
        return Size(rate, rows, evaluations_per_s, columns, size.row_bytes, size.basis, size.assumptions)

    def _join(self, node: Join) -> Size:
        sizes = [self.of(each) for each in node.inputs]
        columns = tuple(column for size in sizes for column in size.columns)
        evidence = Evidence()
        share = selectivity(node.predicate, columns, evidence)
        kept = narrowed(node.predicate, columns)
        if isinstance(node.timing, Ticking | RowTicking):
            return _ticking(node, evidence, sizes, share * product(s.relation_rows for s in sizes), kept)
        rate, rows = 0.0, 1.0
        for each, size in zip(node.inputs, sizes, strict=True):
            own_rate = 0.0 if isinstance(each.timing, Static) else size.rate_rows_per_s
            rate = min(rate * size.relation_rows + own_rate * rows, LARGEST * LARGEST)
            rows = product((rows, size.relation_rows))
        return _derived(
            node,
            evidence,
            sizes,
            rate_rows_per_s=share * rate,
            relation_rows=share * rows,
            columns=kept,
        )

    def _outer_join(self, node: OuterJoin) -> Size:
        left, right = self.of(node.left), self.of(node.right)
        columns, evidence = (*left.columns, *right.columns), Evidence()
        share = selectivity(node.predicate, columns, evidence)
        keeps_left = node.outer in (OuterKind.LEFT, OuterKind.FULL)
        keeps_right = node.outer in (OuterKind.RIGHT, OuterKind.FULL)

        def unmatched(matches: float) -> float:
            return max(0.0, 1.0 - matches)

        rows = share * left.relation_rows * right.relation_rows
        rows += keeps_left * left.relation_rows * unmatched(share * right.relation_rows)
        rows += keeps_right * right.relation_rows * unmatched(share * left.relation_rows)
        if isinstance(node.timing, Ticking | RowTicking):
            return _ticking(node, evidence, [left, right], rows, columns)
        left_moves, right_moves = (not isinstance(n.timing, Static) for n in (node.left, node.right))
        rate = share * (
            left_moves * left.rate_rows_per_s * right.relation_rows
            + right_moves * right.rate_rows_per_s * left.relation_rows
        )
        # A row meets what is in the other window when it comes, and what comes while it is in its own.
        left_meets = right.relation_rows + right_moves * right.rate_rows_per_s * _longest_range_s(node.left)
        right_meets = left.relation_rows + left_moves * left.rate_rows_per_s * _longest_range_s(node.right)
        rate += keeps_left * left.rate_rows_per_s * unmatched(share * left_meets)
        rate += keeps_right * right.rate_rows_per_s * unmatched(share * right_meets)
        return _derived(
            node, evidence, [left, right], rate_rows_per_s=rate, relation_rows=rows, columns=columns
        )

    def _aggregate(self, node: Aggregate) -> Size:
        size, evidence = self.of(node.input), Evidence()
        combinations = product(distinct_values(key, size.columns, evidence) for key in node.keys)
        groups = min(combinations, size.relation_rows)
        keys = tuple(_projected(key, size.columns) for key in node.keys)
        values = tuple(
            ColumnEstimate(
                max(1.0, groups), type_bytes(call.type), evidence.basis, frozenset(evidence.assumptions)
            )
            for call in node.aggregates
        )
        return _ticking(node, evidence, [size], groups, (*keys, *values))


def _source_column(
    distinct: Estimate | Assumption, bytes_: float, table_rows: float | None
) -> ColumnEstimate:
    """A table's column has no more values than the table has rows."""
    value = max(1.0, bounded(distinct.value if table_rows is None else min(distinct.value, table_rows)))
    if isinstance(distinct, Assumption):
        return ColumnEstimate(value, bytes_, Basis.ASSUMED, frozenset({distinct}))
    return ColumnEstimate(value, bytes_, distinct.basis)


def _projected(expression: Expression, columns: tuple[ColumnEstimate, ...]) -> ColumnEstimate:
    if isinstance(expression, Column):
        return columns[expression.index]
    evidence = Evidence()
    distinct = distinct_values(expression, columns, evidence)
    return ColumnEstimate(
        distinct, type_bytes(expression.type), evidence.basis, frozenset(evidence.assumptions)
    )


def _widest(same: tuple[ColumnEstimate, ...]) -> ColumnEstimate:
    return ColumnEstimate(
        max(column.distinct for column in same),
        max(column.bytes for column in same),
        min(column.basis for column in same),
        frozenset().union(*(column.assumptions for column in same)),
    )


def _longest_range_s(node: Node) -> float:
    return max(node.timing.ranges_us) / MICROSECONDS if isinstance(node.timing, Windowed) else 0.0


def _ticking(
    node: Node, evidence: Evidence, inputs: list[Size], rows: float, columns: tuple[ColumnEstimate, ...]
) -> Size:
    evaluations_per_s = max(size.evaluations_per_s for size in inputs)
    return _derived(
        node,
        evidence,
        inputs,
        rate_rows_per_s=evaluations_per_s * rows,
        relation_rows=rows,
        columns=columns,
    )


def _derived(
    node: Node,
    evidence: Evidence,
    inputs: list[Size],
    *,
    rate_rows_per_s: float,
    relation_rows: float,
    columns: tuple[ColumnEstimate, ...],
) -> Size:
    ticks = isinstance(node.timing, Ticking | RowTicking)
    event_time_bytes = 0.0 if isinstance(node.timing, Static) else EVENT_TIME_BYTES
    return Size(
        bounded(rate_rows_per_s),
        bounded(relation_rows),
        max(size.evaluations_per_s for size in inputs) if ticks else 0.0,
        columns,
        sum(column.bytes for column in columns) + event_time_bytes,
        min(evidence.basis, *(size.basis for size in inputs)),
        frozenset(evidence.assumptions).union(*(size.assumptions for size in inputs)),
    )
