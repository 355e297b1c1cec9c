"""What one row costs: CPU time for each kind of operator and engine.

The federation paper has one number c_j for each operator, the time for one input row. We split it into a
part for every row that comes in and one for every row that goes out: how much a join or an aggregate
produces depends on the data, and with the split the numbers do not.

The profile that Plait comes with is made of round numbers that keep the proportions right (a join costs
more than a filter). It is **not calibrated**: cores computed with it compare plans, they do not promise
anything about a machine. What trees and joins cost on two engines, and what a micro-batch does, is rounded
from measurements (`plait bench sharing`; of joins those of docs/decisions/0026).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from plait.space import OperatorKind

SPARK = "spark"
DUCKDB = "duckdb"


@dataclass(frozen=True)
class UnitCost:
    """Microseconds of one core."""

    input_us_per_row: float
    output_us_per_row: float


@dataclass(frozen=True)
class TreeUnitCost:
    """Microseconds of one core, in a tree of windows: for each row, for each partial in each window that it
    goes into, and for each row of a result."""

    row_us: float
    merge_us: float
    final_us: float


@dataclass(frozen=True)
class JoinUnitCost:
    """Microseconds of one core, in a join of rows that queries share: for each micro-batch, whatever comes;
    for each row that arrives, and in addition for each that some query wants and that is taken in; for each
    row that is kept, in each micro-batch; for each combination that is made, and for each that a query
    gets."""

    batch_us: float
    arriving_us: float
    taken_us: float
    kept_us: float
    combination_us: float
    result_us: float


@dataclass(frozen=True)
class UnitCosts:
    """A profile: engine, then operator kind; trees of windows and shared joins by engine. `micro_batch_s` is
    what a micro-batch takes on one core besides its rows, with Spark's own operators or with rows for the
    database; `table_refresh_s` how often a stored table is read again."""

    profile: str
    costs: Mapping[str, Mapping[OperatorKind, UnitCost]]
    trees: Mapping[str, TreeUnitCost]
    joins: Mapping[str, JoinUnitCost]
    micro_batch_s: Mapping[str, float]
    table_refresh_s: float = 60.0

    def of(self, engine: str, kind: OperatorKind) -> UnitCost:
        return self.costs[engine][kind]


UNCALIBRATED = UnitCosts(
    "uncalibrated",
    MappingProxyType(
        {
            SPARK: MappingProxyType(
                {
                    # Between a row of Parquet (0.2 µs) and one of JSON from Kafka (9 µs).
                    OperatorKind.SCAN: UnitCost(0.0, 2.0),
                    OperatorKind.SELECT: UnitCost(0.2, 0.1),
                    OperatorKind.PROJECT: UnitCost(0.2, 0.1),
                    OperatorKind.WINDOW: UnitCost(0.2, 0.1),
                    OperatorKind.WINDOW_JOIN: UnitCost(5.0, 1.0),
                    OperatorKind.TABLE_JOIN: UnitCost(1.0, 0.5),
                    OperatorKind.TICK_JOIN: UnitCost(1.0, 0.5),
                    OperatorKind.AGGREGATE: UnitCost(2.0, 5.0),
                    OperatorKind.TOP: UnitCost(1.0, 0.5),
                    OperatorKind.UNION: UnitCost(0.1, 0.0),
                }
            ),
            DUCKDB: MappingProxyType({OperatorKind.SELECT: UnitCost(0.2, 0.1)}),
        }
    ),
    MappingProxyType({SPARK: TreeUnitCost(10.0, 8.0, 5.0), DUCKDB: TreeUnitCost(2.0, 0.8, 1.0)}),
    MappingProxyType(
        {
            # On Spark a StreamingQuery of its own, which looks through all that it keeps.
            # In DuckDB ten statements, whatever comes: 10 ms for two streams, 17 for three.
            SPARK: JoinUnitCost(400_000.0, 0.3, 5.0, 1.0, 1.0, 0.5),
            DUCKDB: JoinUnitCost(10_000.0, 0.02, 0.3, 0.01, 0.05, 0.1),
        }
    ),
    # A batch on Spark's operators takes 0.6 to 0.9 s, its jobs half of that; ten empty ones 0.4 to 0.7 s.
    MappingProxyType({SPARK: 0.4, DUCKDB: 0.07}),
)
