"""The rows of streams that plans read, tagged with the variants that want them (`plait.sharing.tagged`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plait.engines.duckdb import Database
from plait.engines.incremental.statements import is_in_gap
from plait.engines.shared.askers import create_table
from plait.engines.shared.routing import Routing
from plait.expressions.duckdb import literal_text, to_duckdb, type_to_duckdb
from plait.plan.nodes import Node, StreamScan, TickWindow, Window, walk_plan
from plait.sharing import identity
from plait.sharing.chains import comes_at_once, inputs_of
from plait.sharing.selects import WovenSelect
from plait.sharing.tagged import TaggedPlans, read


class TaggedRows:
    """What plans read, as they are put together. `scans` say which columns of the streams are handed over;
    rows before `from_us` are not seen. `name` begins the names of tables."""

    def __init__(self, name: str, merged: TaggedPlans, scans: Mapping[str, StreamScan], from_us: int) -> None:
        self._merged = merged
        self._from_us = from_us
        self._inputs: dict[Node, _Input] = {
            node: _Input(f"{name}input_{identity.short(node.stream)}_", each.variants, scans, is_tagged=True)
            for node, each in merged.inputs.items()
        }
        self._ways: dict[tuple[Node, str], list[tuple[int, int]]] = {}
        for number, plan in enumerate(merged.plans):
            for node in inputs_of(plan):
                given, variant = merged.input_of(node)
                if given not in self._inputs:
                    prefix = f"{name}plain_{len(self._inputs)}_"
                    self._inputs[given] = _Input(prefix, {variant: read(node)}, scans, is_tagged=False)
                if not comes_at_once(plan):
                    way = given, _is_in_a_window(plan, node)
                    self._ways.setdefault(way, []).append((number, variant))
        self._readers = f"{name}readers"
        self.relations = {table: f"{name}{identity.short(table)}" for table in merged.tables}

    def open(self, database: Database) -> None:
        """Make what is not kept in the file."""
        for each in self._inputs.values():
            each.open(database)
        for table, relation in self.relations.items():
            variants = self._merged.tables[table]
            columns = {field.name: type_to_duckdb(field.type) for field in variants.scan.columns}
            create_table(database, relation, columns, (map(literal_text, row) for row in variants.rows))
        if self._ways:
            numbers = dict.fromkeys(("plan", "way", "variant"), "BIGINT")
            readers = (
                map(str, (plan, way, variant))
                for way, own in enumerate(self._ways.values())
                for plan, variant in own
            )
            create_table(database, self._readers, numbers, readers)

    def input_rows(self, node: Node, rows: Mapping[str, str], before_us: int) -> str:
        """The rows of an input, from those of its stream: `c0`, `c1`, … and `t`."""
        given = self._inputs[node]
        return given.rows(rows[given.stream], max(before_us, self._from_us))

    def late_rows(self, database: Database, late: Mapping[str, str]) -> Iterator[tuple[Node, str, int]]:
        """How many late rows each plan has missed, by stream. They have an `id`, as a plan may read a row in
        several ways."""
        wanted: dict[str, list[str]] = {}
        for way, (node, condition) in enumerate(self._ways):
            given = self._inputs[node]
            ids = given.wanted(f"{way} AS way, v.taker AS variant, r.id", late[given.stream], self._from_us)
            wanted.setdefault(given.stream, []).append(f"{ids} AND {condition}")
        for stream, ways in wanted.items():
            found = database.fetch(
                f"SELECT plan, count(DISTINCT id) FROM ({' UNION ALL '.join(ways)}) "
                f"JOIN {self._readers} USING (way, variant) GROUP BY plan"
            )
            yield from ((self._merged.plans[number], stream, count) for number, count in found)


class _Input:
    """Rows of a stream for variants, by their numbers. `name` begins the names of its tables."""

    def __init__(
        self,
        name: str,
        variants: Mapping[int, WovenSelect],
        scans: Mapping[str, StreamScan],
        *,
        is_tagged: bool,
    ) -> None:
        self._variants = variants
        self._is_tagged = is_tagged
        self._constants = f"{name}constants"
        first = next(iter(variants.values()))
        self._shape = first.shaped.shape
        self.stream = first.key.scan.stream.lower()
        places = {field.name: index for index, field in enumerate(scans[self.stream].columns)}
        self._columns = [f"c{places[field.name]}" for field in first.key.scan.columns]
        selections = [(each.selection,) for each in variants.values()]
        self._routing = Routing(name, [first.key.pattern], selections, [*variants])

    def open(self, database: Database) -> None:
        self._routing.create(database)
        types = {f"q{k}": type_to_duckdb(type_) for k, type_ in enumerate(self._shape.constants)}
        rows = (
            [str(number), *map(literal_text, each.shaped.constants)]
            for number, each in self._variants.items()
        )
        create_table(database, self._constants, {"taker": "BIGINT", **types}, rows)

    def rows(self, rows: str, from_us: int) -> str:
        references = [f"r.{column}" for column in self._columns]
        references += [f"q.q{k}" for k in range(len(self._shape.constants))]
        items = [to_duckdb(each, references) for each in self._shape.expressions]
        named = [f"{item} AS c{k}" for k, item in enumerate([*items, *(["v.taker"] * self._is_tagged)])]
        return f"({self.wanted(', '.join([*named, 'r.t']), rows, from_us)})"

    def wanted(self, items: str, rows: str, from_us: int) -> str:
        """What to select of rows `r` and the variants `v` that want them; a condition can be added."""
        constants = ""
        if self._shape.constants:
            constants = f" JOIN {self._constants} AS q ON q.taker = v.taker"
        return (
            f"SELECT {items} FROM {self._routing.routed(rows, self._columns)}{constants} "
            f"WHERE r.t >= {from_us} AND {self._routing.common(self._columns)}"
        )


def _is_in_a_window(plan: Node, node: Node) -> str:
    """Whether a row `r` of an input is in some window of the plan: there may be gaps."""
    reading = [each for each in walk_plan(plan) if node in each.inputs]
    windows = [each.window for each in reading if isinstance(each, Window)]
    gaps = [is_in_gap(window) for window in windows if isinstance(window, TickWindow)]
    return f"NOT ({' AND '.join(gaps)})" if len(gaps) == len(reading) else "true"
