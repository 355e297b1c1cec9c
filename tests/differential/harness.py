"""Compares what each way of running gives with the definition, query by query, and keeps count.

A check names its workload's seed and the query, which is all that is needed to repeat it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.differential.arrivals import Row
from tests.differential.queries import RandomQuery
from tests.differential.workloads import RandomWorkload

from plait.evaluator import StoredData, difference, evaluate

LEAST_WITH_ROWS = 0.9

Rows: TypeAlias = Mapping[str, Sequence[Row]]  # of each query, by its name


@dataclass(frozen=True)
class Finding:
    """A way of running a query gave other rows than its definition has, or an error."""

    seed: int
    query: RandomQuery
    way: str
    text: str

    def __str__(self) -> str:
        return (
            f"workload {self.seed}, {self.query.name} ({self.query.kind}), {self.way}:\n"
            f"{self.query.sql}\n{self.text}\n"
            f"to repeat it: python -m tests.differential.fuzz --seed {self.seed} --query {self.query.name}"
        )


@dataclass
class Tally:
    """What was checked: queries by class, those among them without rows, comparisons by way."""

    queries: Counter[str] = field(default_factory=Counter)
    without_rows: Counter[str] = field(default_factory=Counter)
    comparisons: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def note(self, query: RandomQuery, expected: Sequence[Row]) -> None:
        self.queries[query.kind] += 1
        self.without_rows[query.kind] += not expected

    def compare(
        self, seed: int, query: RandomQuery, way: str, expected: Sequence[Row], given: Sequence[Row]
    ) -> None:
        self.comparisons[way] += 1
        if found := difference(expected, given):
            self.findings.append(Finding(seed, query, f"definition (left) and {way} (right)", found))

    def attempt(
        self,
        seed: int,
        query: RandomQuery,
        way: str,
        expected: Sequence[Row],
        give: Callable[[], Sequence[Row]],
    ) -> None:
        """Compare with what `give` gives; an error is a finding too."""
        try:
            given = give()
        except Exception as error:
            self.comparisons[way] += 1
            self.findings.append(Finding(seed, query, way, f"{type(error).__name__}: {error}"))
        else:
            self.compare(seed, query, way, expected, given)

    @property
    def bites(self) -> bool:
        """Whether enough of the queries had rows to compare."""
        return self.without_rows.total() <= (1 - LEAST_WITH_ROWS) * self.queries.total()

    def __str__(self) -> str:
        lines = [f"{count:6} {kind}" for kind, count in sorted(self.queries.items())]
        lines.append(f"{self.queries.total():6} queries, {self.without_rows.total()} of them without rows")
        lines += [f"{count:6} compared with {way}" for way, count in sorted(self.comparisons.items())]
        lines.append(f"{len(self.findings):6} differ")
        return "\n".join(lines)


def definition(workload: RandomWorkload) -> dict[str, Sequence[Row]]:
    """The rows of every query, from its definition over the rows as they were made."""
    loaded = workload.load()
    with StoredData.from_rows(loaded.catalog, workload.rows) as data:
        return {query.name: evaluate(loaded.queries[query.name], data).rows for query in workload.queries}
