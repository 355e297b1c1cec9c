"""The cost of an operator: what it reads, what it gives, the cores it keeps busy and the rows it
remembers.

Eq. 4 of the federation paper: u_j = Σ_i λ_i c_ji, here `cores` = Σ_i input_rows_per_s[i] · input cost +
output_rows_per_s · output cost. A core is one second of CPU time each second.

What an operator reads from a stream each second is the stream's rate, except through a window with ticks:
an aggregate takes every row in once, anything else evaluates the window's whole relation at every tick.

What it remembers (`state_rows`): a join the relations of its inputs; an aggregate its groups in each
piece of the window, or the window's rows where these are fewer or values must be told apart; `top` one
relation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from plait.catalog import Catalog
from plait.cost.bounds import product
from plait.cost.sizes import MICROSECONDS, Size, Sizes
from plait.cost.units import SPARK, UNCALIBRATED, UnitCosts
from plait.plan.nodes import Aggregate, Node, RowWindow, StreamScan, TableScan, TickWindow
from plait.space import Input, OperatorKind, Step
from plait.statistics import StatisticsOracle, declared


@dataclass(frozen=True)
class OperatorCost:
    """Rows in and out each second, cores (u of Eq. 4), and the state."""

    input_rows_per_s: tuple[float, ...]
    output_rows_per_s: float
    cores: float
    state_rows: float
    state_bytes: float


class CostModel:
    """Sizes and costs under one set of statistics and one profile of unit costs; each is computed once."""

    def __init__(
        self,
        catalog: Catalog,
        statistics: StatisticsOracle | None = None,
        unit_costs: UnitCosts = UNCALIBRATED,
    ) -> None:
        self.unit_costs = unit_costs
        self._sizes = Sizes(catalog, statistics or declared(catalog), unit_costs.table_refresh_s)
        self._costs: dict[tuple[Step, str], OperatorCost] = {}

    def size(self, node: Node) -> Size:
        return self._sizes.of(node)

    def source_size(self, scan: StreamScan | TableScan) -> Size:
        """The stream or table that a scan reads, with all its columns."""
        return self._sizes.source(scan)

    def scan(self, scan: StreamScan | TableScan, engine: str = SPARK) -> OperatorCost:
        """Reading a source."""
        rate = self.source_size(scan).rate_rows_per_s
        return OperatorCost((), rate, self._cores(OperatorKind.SCAN, engine, (), rate), 0.0, 0.0)

    def pruned_scan(self, scan: StreamScan | TableScan, engine: str = SPARK) -> OperatorCost:
        """Leaving out columns of a source."""
        rate = self.size(scan).rate_rows_per_s
        return OperatorCost((rate,), rate, self._cores(OperatorKind.PROJECT, engine, (rate,), rate), 0.0, 0.0)

    def operator(self, step: Step, engine: str = SPARK) -> OperatorCost:
        key = (step, engine)
        cost = self._costs.get(key)
        if cost is None:
            cost = self._costs[key] = self._compute(step, engine)
        return cost

    def _compute(self, step: Step, engine: str) -> OperatorCost:
        read = tuple(self._input_rows_per_s(step.kind, each) for each in step.inputs)
        given = self.size(step.output).rate_rows_per_s
        rows, row_bytes = self._state(step)
        return OperatorCost(read, given, self._cores(step.kind, engine, read, given), rows, rows * row_bytes)

    def _cores(self, kind: OperatorKind, engine: str, read: tuple[float, ...], given: float) -> float:
        unit = self.unit_costs.of(engine, kind)
        return (sum(read) * unit.input_us_per_row + given * unit.output_us_per_row) / MICROSECONDS

    def _input_rows_per_s(self, kind: OperatorKind, read: Input) -> float:
        node = read.stream if kind is OperatorKind.AGGREGATE else read.as_read
        return self.size(node).rate_rows_per_s

    def _state(self, step: Step) -> tuple[float, float]:
        """Rows, and the bytes of one of them."""
        relations = [self.size(each.as_read) for each in step.inputs]
        rows = sum(size.relation_rows for size in relations)
        match step.kind:
            case OperatorKind.WINDOW_JOIN | OperatorKind.TABLE_JOIN | OperatorKind.TICK_JOIN:
                kept_bytes = sum(size.relation_rows * size.row_bytes for size in relations)
                return rows, kept_bytes / rows if rows else 0.0
            case OperatorKind.AGGREGATE:
                assert isinstance(step.output, Aggregate)
                return self._aggregate_state(step.output, step.inputs[0])
            case OperatorKind.TOP:
                return rows, relations[0].row_bytes
            case OperatorKind.WINDOW:
                return self.size(step.output).relation_rows, relations[0].row_bytes
            case _:
                return 0.0, 0.0

    def _aggregate_state(self, node: Aggregate, read: Input) -> tuple[float, float]:
        relation, result = self.size(read.as_read), self.size(node)
        match read.window:
            case RowWindow(rows, _, partition):
                columns = self.size(read.stream).columns
                return rows * product(columns[index].distinct for index in partition), relation.row_bytes
            case TickWindow(range_us, slide_us, _):
                # Paired windows (aggregates paper, §2): two pieces a slide unless it divides the range.
                pieces = ceil(range_us / slide_us) * (2 if range_us % slide_us else 1)
                partials = pieces * result.relation_rows
                distinct = any(call.function == "count_distinct" for call in node.aggregates)
                if distinct or partials > relation.relation_rows:
                    return relation.relation_rows, relation.row_bytes
                return partials, result.row_bytes
            case _:
                return result.relation_rows, result.row_bytes
