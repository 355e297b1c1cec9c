"""However many queries there are that differ in constants, a batch takes the same number of statements."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.engines.shared.together import fragment_of, rows
from tests.workloads.trunks import scans_of, trunk_of

from plait.batches import Batch
from plait.engines.duckdb import Database
from plait.engines.shared.looks import Looks

TICKS = "[RANGE 4 SECONDS SLIDE 2 SECONDS]"
KINDS = {
    "rows": "SELECT k, v FROM a WHERE v > {n}",
    "rows with a label": "SELECT 'alert {n}' AS alert, k FROM a WHERE v > {n}",
    "rows with a factor": "SELECT v * {n} AS w, v % {n} AS m FROM a WHERE k = {n}",
    "rows by a pattern": "SELECT k, v FROM a WHERE g LIKE 'x{n}%'",
    "windows by a pattern": f"SELECT k, sum(v) AS s FROM a {TICKS} WHERE g LIKE 'x{{n}}%' GROUP BY k",
    "windows": f"SELECT k, sum(v) AS s FROM a {TICKS} WHERE v > {{n}} GROUP BY k HAVING sum(v) > {{n}}",
    "windows with a label": f"SELECT k, sum(v) + {{n}} AS s, {{n}} AS n FROM a {TICKS} GROUP BY k",
    "joins": "SELECT a.v, b.v AS w FROM a [RANGE 2 SECONDS], b [RANGE 3 SECONDS] "
    "WHERE a.k = b.k AND a.k = {n}",
    "aggregates of joins": f"SELECT b.k, sum(a.v) AS s FROM a {TICKS}, b {TICKS} "
    "WHERE a.k = b.k AND a.v > {n} GROUP BY b.k HAVING count(*) > {n}",
    "joins of aggregates": f"SELECT x.k, x.s, {{n}} AS n FROM (SELECT k, sum(v) AS s FROM a {TICKS} "
    f"WHERE v > {{n}} GROUP BY k) x, (SELECT k, count(*) AS c FROM b {TICKS} GROUP BY k) y "
    "WHERE x.k = y.k AND y.c > {n}",
    "different values": f"SELECT k, count(DISTINCT g) AS d FROM a {TICKS} WHERE v > {{n}} GROUP BY k",
    "windows of rows": "SELECT k, sum(v) AS s FROM (SELECT k, v FROM a WHERE v > {n}) z "
    "[PARTITION BY k ROWS 3 SLIDE 2] GROUP BY k",
    "outer joins": "SELECT a.v, b.v AS w FROM (SELECT k, v FROM a [RANGE 2 SECONDS] WHERE v > {n}) a "
    "LEFT JOIN b [RANGE 3 SECONDS] ON a.k = b.k AND b.v > {n}",
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_statements_do_not_become_more_with_queries(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[int] = Counter()
    fetch, fetch_arrow = Database.fetch, Database.fetch_arrow
    for number in (2, 20):

        def counted(
            database: Database, sql: str, parameters: Sequence[object] | None = None, at: int = number
        ) -> object:
            counts[at] += 1
            return fetch(database, sql, parameters)

        def counted_arrow(database: Database, sql: str, at: int = number) -> object:
            counts[at] += 1
            return fetch_arrow(database, sql)

        fragment, catalog = fragment_of([kind.format(n=n + 1) for n in range(number)])
        rng = random.Random(0)
        scans = scans_of(fragment)
        batches = [{key: rows(scan, rng) for key, scan in scans.items()} for _ in range(4)]
        with closing(trunk_of(fragment, catalog, tmp_path / f"{number}.duckdb")) as trunk:
            monkeypatch.setattr(Looks, "taken", lambda *_: ({}, {}))  # they go by the clock
            monkeypatch.setattr(Database, "fetch", counted)
            monkeypatch.setattr(Database, "fetch_arrow", counted_arrow)
            for id_, batch in enumerate(batches):
                trunk.apply(Batch(id_), batch, {}, lambda _: None)
            monkeypatch.undo()
    assert counts[2] == counts[20]
