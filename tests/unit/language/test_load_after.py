"""Texts that are read after others: what they may use, and what they may not say again."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait import language
from plait.errors import PlaitError, Source
from plait.workload import Workload

KNOWN = """
CREATE SITE here;
CREATE STREAM s (k INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'in', format = 'json');
CREATE TABLE t (k INT, name STRING) WITH (connector = 'files', path = 't', format = 'csv');
CREATE CONTINUOUS QUERY a INTO 'taken' AS SELECT k FROM s WHERE k > 1;
"""


def after(text: str) -> Workload:
    return language.load_after(language.load_text(KNOWN), Source("more.sql", text), Path())


def test_what_is_known_can_be_used() -> None:
    more = after(
        "CREATE STREAM r (x INT, at TIMESTAMP, WATERMARK FOR at AS at);"
        "CREATE CONTINUOUS QUERY b AT here AS SELECT a.k, t.name FROM a JOIN t ON a.k = t.k;"
        "CREATE CONTINUOUS QUERY c AS SELECT k FROM b WHERE k < 9;"
        "CREATE CONTINUOUS QUERY d AS SELECT x FROM r;"
    )
    assert [*more.queries] == ["b", "c", "d"]
    assert [*more.catalog.streams] == ["s", "r"]
    assert [query.reads for query in more.queries.values()] == [("a",), ("b",), ()]
    assert more.queries["b"].site == "here"


def test_plans_are_those_of_one_text() -> None:
    text = "CREATE CONTINUOUS QUERY b AS SELECT k FROM a WHERE k < 5;"
    assert after(text).queries["b"].plan == language.load_text(KNOWN + text).queries["b"].plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE CONTINUOUS QUERY A AS SELECT k FROM s;", "already a query `A` in the system"),
        ("CREATE TABLE s (x INT) WITH (connector = 'files', path = 'x', format = 'csv');", "a stream `s`"),
        ("CREATE SITE here;", "already a site `here`"),
        ("DROP STREAM s;", "cannot be dropped"),
        ("CREATE CONTINUOUS QUERY b AS SELECT k FROM aa;", "there is no stream, table or query `aa`"),
        ("CREATE CONTINUOUS QUERY b INTO 'taken' AS SELECT k FROM s;", "takes the results of query `a`"),
        ("CREATE CONTINUOUS QUERY b INTO 'in/b' AS SELECT k FROM s;", "is inside the folder that stream `s`"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PlaitError) as raised:
        after(text)
    assert message in raised.value.render()
    assert "more.sql:1" in raised.value.render()
