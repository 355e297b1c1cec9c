"""The rows of streams that plans of one outline want, tagged with who wants them (`plait.sharing.tagged`)."""

from __future__ import annotations

from collections.abc import Mapping

from plait.engines.duckdb import Database
from plait.engines.shared.askers import create_table
from plait.engines.shared.routing import Routing
from plait.expressions.duckdb import literal_to_duckdb, to_duckdb, type_to_duckdb
from plait.plan.nodes import Node
from plait.sharing.tagged import TaggedInput, TaggedPlan


class TaggedRows:
    """`name` begins the names of its tables."""

    def __init__(self, name: str, merged: TaggedPlan) -> None:
        self._merged = merged
        self._constants = f"{name}constants"
        self._inputs: Mapping[Node, tuple[TaggedInput, Routing]] = {
            each.node: (
                each,
                Routing(
                    f"{name}input_{number}",
                    [each.selections[0].pattern],
                    [(selection,) for selection in each.selections],
                ),
            )
            for number, each in enumerate(merged.inputs)
        }

    def open(self, database: Database) -> None:
        """Make what is not kept in the file."""
        for _, routing in self._inputs.values():
            routing.create(database)
        constants = self._merged.constants
        columns = {f"q{k}": type_to_duckdb(of[0].type) for k, of in enumerate(constants)}
        rows = (
            [str(number), *(literal_to_duckdb(of[number]) for of in constants)]
            for number in range(len(self._merged.plans))
        )
        create_table(database, self._constants, {"taker": "INTEGER", **columns}, rows)

    def input_rows(self, node: Node, rows: Mapping[str, str], before_us: int) -> str:
        """The rows of an input, from those of its stream: `c0`, `c1`, …, then the tag and the constants, and
        `t`."""
        tagged, routing = self._inputs[node]
        columns = [f"c{k}" for k in range(len(tagged.scan.columns))]
        constants = [f"q.q{k}" for k in range(len(self._merged.constants))]
        references = [*(f"r.{name}" for name in columns), *constants]
        items = [to_duckdb(each, references) for each in tagged.expressions]
        items += ["q.taker", *constants]
        named = [f"{item} AS c{k}" for k, item in enumerate(items)]
        return (
            f"(SELECT {', '.join([*named, 'r.t'])} "
            f"FROM {routing.routed(rows[tagged.scan.stream.lower()], columns)} "
            f"JOIN {self._constants} AS q ON q.taker = v.taker "
            f"WHERE r.t >= {before_us} AND {routing.common(columns)})"
        )
