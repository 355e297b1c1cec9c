"""The ticks of a tree's windows: which there are, and what its partials come to at each.

Each tick is a range of pieces of time, `(low, high]`, by their places in the order of time. There are two
ways to put the partials of such a range together:

- By prefix sums: the sums up to `high` less those up to `low`, of every group. For what is exact, where most
  groups have rows in most pieces.
- Piece by piece. Where ranges are long, whole blocks of pieces are put together first, and a range is made of
  the blocks in it and the pieces at its ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plait.engines.duckdb import Database
from plait.engines.incremental.bands import Band
from plait.engines.incremental.statements import within
from plait.windows.partials import Partial, PartialKind

# Prefix sums of so many rows are made without a thought; of more, if at least every so many has a partial.
_FEW = 5_000_000
_SPARSE = 4
# So many pieces are a block. It pays to make blocks for ranges of several.
_BLOCK = 64
_LONG = 4 * _BLOCK


@dataclass(frozen=True)
class Ticks:
    """Of the windows in a table (target, variant, and range `r`, slide `s` and offset `o` of a window), over
    a table of partials: by the last edge before it a piece of time, a variant, `keys` and `stored` columns,
    which are these `partials`."""

    name: str
    windows: str
    keys: Sequence[str]
    partials: Mapping[Partial, int]
    stored: Sequence[str]

    def find(self, database: Database, pieces: Band, before_us: int, now_us: int) -> None:
        """Note which ticks there are after `before_us` and up to `now_us`: they hold one of these pieces at
        least."""
        database.execute(
            f"CREATE OR REPLACE TEMP TABLE {self._edges} AS "
            "SELECT edge, row_number() OVER (ORDER BY edge) AS place, "
            f"coalesce(lead(edge) OVER (ORDER BY edge), {now_us}) AS following "
            f"FROM (SELECT DISTINCT edge FROM {self.name} WHERE {within('edge', pieces)})"
        )
        # Each tick is found once, by the last piece before it, if the window is long enough to hold that. The
        # first tick after a time: the remainder is taken twice, since that of a negative number is negative.
        after = "{0} - (({0} - o) % s + s) % s + s"
        before = f"{before_us}::BIGINT"
        first = after.format(f"greatest(edge, {before})")
        database.execute(
            f"CREATE OR REPLACE TEMP TABLE {self._found} AS "
            "WITH x AS (SELECT target, variant, r, place AS high, "
            f"unnest(generate_series({first}, least(edge + r, following, {now_us}), s)) AS tick "
            f"FROM {self.windows} JOIN {self._edges} ON edge > {before} - r "
            f"WHERE {after.format(before)} <= {now_us}) "
            "SELECT target, variant, tick, high, coalesce(low.place, 0) AS low FROM x "
            f"ASOF LEFT JOIN {self._edges} AS low ON x.tick - x.r > low.edge"
        )

    def are_dense(self, database: Database, pieces: Band) -> bool:
        """Whether most groups have rows in most pieces: prefix sums have a row for each of both."""
        partials = f"FROM {self.name} WHERE {within('edge', pieces)}"
        ((count,),) = database.fetch(f"SELECT count(*) {partials}")
        ((places,),) = database.fetch(f"SELECT count(*) FROM {self._edges}")
        if count * places <= _FEW:
            return True
        group = ", ".join(self._group)
        ((groups,),) = database.fetch(f"SELECT count(*) FROM (SELECT DISTINCT {group} {partials})")
        return bool(groups * places <= max(_FEW, _SPARSE * count))

    def are_long(self, database: Database) -> bool:
        """Whether some hold many pieces."""
        ((longest,),) = database.fetch(f"SELECT max(high - low) FROM {self._found}")
        return longest is not None and longest >= _LONG

    def by_prefix(self, pieces: Band, targets: str | None) -> str:
        """The exact partials of each tick of some targets, or of all."""
        exact = [n for each, n in self.partials.items() if each.is_exact]
        group = self._group
        same = [f"{{0}}.{name} IS NOT DISTINCT FROM {{1}}.{name}" for name in group]
        sums = [
            f"sum(coalesce(m.p{n}, 0)) OVER (PARTITION BY {', '.join(f'g.{name}' for name in group)} "
            f"ORDER BY e.place) AS p{n}"
            for n in exact
        ]
        differences = [f"high.p{n} - coalesce(low.p{n}, 0) AS p{n}" for n in exact]
        return (
            f"WITH m AS MATERIALIZED ({self._merged(pieces)}), "
            f"g AS (SELECT DISTINCT {', '.join(group)} FROM m), "
            f"c AS MATERIALIZED (SELECT e.place, {', '.join([*(f'g.{name}' for name in group), *sums])} "
            f"FROM {self._edges} AS e CROSS JOIN g LEFT JOIN m ON m.edge = e.edge AND "
            f"{' AND '.join(same).format('m', 'g')}) "
            f"SELECT t.target, t.tick, {', '.join([*(f'high.{name}' for name in group), *differences])} "
            f"FROM {self._of(targets)} AS t "
            "JOIN c AS high ON high.place = t.high AND high.variant = t.variant "
            f"LEFT JOIN c AS low ON low.place = t.low AND {' AND '.join(same).format('low', 'high')} "
            "WHERE high.p0 > coalesce(low.p0, 0)"
        )

    def by_pieces(self, pieces: Band, targets: str | None, *, in_blocks: bool) -> str:
        """All partials of each tick of some targets, or of all."""
        group = ["target", "tick", *(f"m.{name}" for name in self._group)]
        placed = (
            f"SELECT e.place, m.* EXCLUDE (edge) FROM ({self._merged(pieces)}) AS m "
            f"JOIN {self._edges} AS e USING (edge)"
        )
        held = f"SELECT target, variant, tick, unnest({_places('low + 1', 'high')}) AS place FROM {{}}"
        if in_blocks:
            # The place of a block is the negative of its number. The first is not used: places begin with 1.
            placed = (
                f"WITH a AS MATERIALIZED ({placed}) FROM a UNION ALL BY NAME "
                f"SELECT -(place // {_BLOCK}) AS place, {', '.join([*self._group, *self._kept('{}')])} "
                f"FROM a WHERE place >= {_BLOCK} GROUP BY ALL"
            )
            held = (
                "SELECT target, variant, tick, unnest(CASE WHEN first < last THEN "
                f"{_places('low + 1', f'first * {_BLOCK} - 1')} || {_places('first', 'last - 1', '-')} || "
                f"{_places(f'last * {_BLOCK}', 'high')} ELSE {_places('low + 1', 'high')} END) AS place "
                f"FROM (SELECT *, (low + {_BLOCK}) // {_BLOCK} AS first, "
                f"(high + 1) // {_BLOCK} AS last FROM {{}})"
            )
        return (
            f"SELECT {', '.join([*group, *self._kept('m.{}')])} FROM ({held.format(self._of(targets))}) AS t "
            f"JOIN ({placed}) AS m USING (place, variant) GROUP BY {', '.join(group)}"
        )

    @property
    def _edges(self) -> str:
        return f"{self.name}_edges"

    @property
    def _found(self) -> str:
        return f"{self.name}_ticks"

    @property
    def _group(self) -> list[str]:
        return ["variant", *self.keys]

    def _of(self, targets: str | None) -> str:
        return (
            self._found if targets is None else f"(SELECT * FROM {self._found} WHERE target IN ({targets}))"
        )

    def _merged(self, pieces: Band) -> str:
        """The partials of each of these pieces, variant and group as one row."""
        groups = ["edge", *self._group]
        columns = zip(self.partials, self.stored, strict=True)
        kept = [f"{merge_sql(each, column)} AS p{n}" for n, (each, column) in enumerate(columns)]
        return (
            f"SELECT {', '.join([*groups, *kept])} FROM {self.name} WHERE {within('edge', pieces)} "
            f"GROUP BY {', '.join(groups)}"
        )

    def _kept(self, column: str) -> list[str]:
        return [f"{merge_sql(each, column.format(f'p{n}'))} AS p{n}" for each, n in self.partials.items()]


def merge_sql(partial: Partial, column: str) -> str:
    """Several partials as one."""
    return (
        f"{partial.kind}({column})"
        if partial.kind in (PartialKind.MIN, PartialKind.MAX)
        else f"sum({column})"
    )


def _places(first: str, last: str, sign: str = "") -> str:
    series = f"generate_series({first}, {last})"
    return f"list_transform({series}, lambda x: -x)" if sign else series
