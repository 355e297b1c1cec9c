"""Hostile SQL as data: each case is a text and the codes of the errors that it must give, and no others.

`queries.txt` holds SELECTs, to be read after `PRELUDE`; `declarations.txt` holds whole files. A case is a
line `### name → codes [→ hint]` and the text below it. What no editor should have to show (hidden characters,
absurd sizes) is made here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PRELUDE = """\
CREATE STREAM signals (k INT, name STRING, v INT, price DECIMAL(9, 2), ratio DOUBLE, ok BOOLEAN, ts TIMESTAMP,
                       WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS);
CREATE STREAM events (k INT, title STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 5 SECONDS);
CREATE TABLE colours (id INT, colour STRING);
CREATE CONTINUOUS QUERY hostile AS
"""

# What `${…}` stands for in the cases; no output may ever show it.
SECRETS = {"PLAIT_TEST_SECRET": "hunter2-shown", "PLAIT_TEST_SECRET_CLIMBS": "../hunter2-shown"}
STREAM = "CREATE STREAM s (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)"


@dataclass(frozen=True)
class Case:
    """`hint` is a part of the hint that one of the errors must have."""

    name: str
    text: str
    codes: frozenset[str]
    hint: str = ""


def query(name: str, select: str, *codes: str) -> Case:
    return Case(name, f"{PRELUDE}{select};", frozenset(codes))


def declaration(name: str, text: str, *codes: str) -> Case:
    return Case(name, text, frozenset(codes))


def _read(file: str, before: str, after: str) -> list[Case]:
    cases = []
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    for block in text.split("### ")[1:]:
        head, *lines = block.splitlines()
        body = "\n".join(line for line in lines if not line.startswith("# "))  # headings
        name, codes, *hint = head.split(" → ")
        cases.append(Case(name, before + body.strip() + after, frozenset(codes.split()), *hint))
    return cases


HIDDEN = [
    query("zero-width space in a name", "SELECT na\u200bme FROM signals", "hidden-character"),
    query("zero-width joiner in a name", "SELECT na\u200dme FROM signals", "hidden-character"),
    query("soft hyphen in a name", "SELECT na\u00adme FROM signals", "hidden-character"),
    query(
        "text that runs right to left", "SELECT k FROM signals WHERE name = '\u202eabc'", "hidden-character"
    ),
    query("isolate in a comment", "SELECT k /* \u2066 admin \u2069 */ FROM signals", "hidden-character"),
    query("NUL", "SELECT k FROM signals WHERE name = 'a\x00b'", "hidden-character"),
    query("bell", "SELECT k\x07 FROM signals", "hidden-character"),
    query("escape sequence in a name", "SELECT `\x1b[31mred` FROM signals", "hidden-character"),
    query("byte order mark in the middle", "SELECT k \ufeffFROM signals", "hidden-character"),
    query("tag characters", "SELECT k\U000e0041\U000e0042 FROM signals", "hidden-character"),
    query("no-break space", "SELECT\u00a0k FROM signalz", "unknown-relation"),
    query("combining character", "SELECT n\u0301ame FROM signals", "unknown-column"),
    query("private use", "SELECT \ue000 FROM signals", "unknown-column"),
    query("homoglyph of a keyword", "\u0405ELECT k FROM signals", "syntax"),
    query("homoglyph in a name", "SELECT k FROM s\u0456gnals", "unknown-relation"),
    query("full-width letters", "\uff33\uff25\uff2c\uff25\uff23\uff34 k FROM signals", "syntax"),
    query("typographic quotes", "SELECT k FROM signals WHERE name = \u2018abc\u2019", "quotation-marks"),
    query("emoji", "SELECT \U0001f642 FROM signals", "unknown-column"),
]

SIZES = [
    query("5,000 parentheses", "SELECT " + "(" * 5000 + "v" + ")" * 5000 + " FROM signals", "depth"),
    query("60 parentheses", "SELECT " + "(" * 60 + "v" + ")" * 60 + " FROM signals", "depth"),
    query("2,000 open parentheses", "SELECT " + "(" * 2000, "depth"),
    query("5,000 minus signs", "SELECT " + "- " * 5000 + "v FROM signals", "depth"),
    query("5,000 NOTs", "SELECT k FROM signals WHERE " + "NOT " * 5000 + "ok", "depth"),
    query(
        "1,000 subqueries", "SELECT k FROM " + "(SELECT k FROM " * 1000 + "signals" + ") AS s" * 1000, "depth"
    ),
    query(
        "1,000 CASEs",
        "SELECT " + "CASE WHEN ok THEN " * 1000 + "1" + " END" * 1000 + " FROM signals",
        "depth",
    ),
    query("1,000 functions", "SELECT " + "abs(" * 1000 + "v" + ")" * 1000 + " FROM signals", "depth"),
    query("3,000 additions", "SELECT v" + " + v" * 3000 + " FROM signals", "depth"),
    query("10,000 additions", "SELECT v" + " + v" * 10000 + " FROM signals", "statement-size"),
    query("20,000 ANDs", "SELECT k FROM signals WHERE v > 0" + " AND v > 0" * 20000, "statement-size"),
    query("100,000 columns", "SELECT " + "v, " * 100000 + "v FROM signals", "statement-size"),
    query("a name of 5,000 letters", "SELECT " + "k" * 5000 + " FROM signals", "name"),
    query(
        "a text of a megabyte",
        "SELECT nothing FROM signals WHERE name = '" + "x" * 10**6 + "'",
        "unknown-column",
    ),
    query("5,000 comments that begin", "SELECT " + "/*" * 5000 + " k FROM signals", "unreadable"),
    query("a number of 60 digits", "SELECT 1" + "0" * 60 + " + v FROM signals", "type"),
    query("digits of another script", "SELECT count(*) FROM signals [RANGE \u0663 MINUTES]", "duration"),
    declaration(
        "a size in digits of another script", "CREATE SITE a WITH (memory = '\u0663 GB');", "option-value"
    ),
    query("a number of 5,000 digits", "SELECT " + "9" * 5000 + " + v FROM signals", "number"),
    query("a range of 5,000 digits", f"SELECT count(*) FROM signals [RANGE {'9' * 5000} SECONDS]", "number"),
    query(
        "a limit of 5,000 digits", f"SELECT k FROM signals [ROWS 9] ORDER BY k LIMIT {'9' * 5000}", "number"
    ),
    query(
        "an interval of 5,000 digits", f"SELECT ts + INTERVAL '{'9' * 5000}' DAYS FROM signals", "duration"
    ),
    query("a year of 5,000 digits", f"SELECT k FROM signals WHERE ts > '{'9' * 5000}-01-01'", "type"),
    declaration("a rate of 5,000 digits", f"{STREAM} WITH (rate = '{'9' * 5000}/min');", "option-value"),
    declaration("a delay of 5,000 digits", STREAM.replace(" 5 ", f" {'9' * 5000} ") + ";", "number"),
    query(
        "400 joins",
        "SELECT s.k FROM signals s [RANGE 1 MINUTE]"
        + "".join(f" JOIN events n{i} [RANGE 1 MINUTE] ON s.k = n{i}.k" for i in range(400)),
        "too-large",
    ),
    declaration("a name of 129 letters", STREAM.replace("STREAM s", "STREAM " + "x" * 129) + ";", "name"),
    declaration(
        "a path of a megabyte",
        STREAM + " WITH (connector = 'files', path = '" + "x" * 10**6 + "', format = 'csv');",
        "option-value",
    ),
    declaration("2,000 statements that are none", "nonsense;\n" * 2000, "statement", "too-many-errors"),
    declaration("10 MB of comments", "-- nothing to see\n" * 600_000, "source-size"),
    declaration("10 MB of queries", PRELUDE + "SELECT k FROM signals;\n" * 450_000, "source-size"),
]

CASES = [
    *_read("queries.txt", PRELUDE, ";"),
    *_read("declarations.txt", "", ""),
    *HIDDEN,
    *SIZES,
]
