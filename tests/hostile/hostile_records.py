"""Records of files that are wrong, each in its own way, with a part of the reason that is given for it; and
records that look wrong and are not."""

from __future__ import annotations

import json

COLUMNS = "k,v,d,x,name,at"
DECLARED = "k INT, v INT, d DECIMAL(5, 2), x DOUBLE, name STRING, at TIMESTAMP"
AT = "2026-01-01 12:00:05"

BAD_CSV = {
    f"x,1,1.5,1.0,n,{AT}": "`k` holds 'x', which is no INT",
    f"1,99999999999,1.5,1.0,n,{AT}": "`v` holds '99999999999', which is no INT",
    f"1,1.5,1.5,1.0,n,{AT}": "`v` holds '1.5', which is no INT",
    f"1,1,12345.6,1.0,n,{AT}": "`d` holds '12345.6', which is no DECIMAL(5,2)",
    f"1,1,1.234,1.0,n,{AT}": "`d` holds '1.234', which is no DECIMAL(5,2)",
    f"1,1,1.5,abc,n,{AT}": "`x` holds 'abc', which is no DOUBLE",
    f"1,1,1.5,1e999,n,{AT}": "`x` holds '1e999', which is no DOUBLE",
    "1,1,1.5,1.0,n,": "`at` is NULL",
    "1,1,1.5,1.0,n,1969-12-31 23:59:59": "which is not after 1970-01-01 00:00:00",
    "1,1,1.5,1.0,n,10000-01-01 00:00:00": "which is no TIMESTAMP",
    "1,1,1.5,1.0,n,2026-02-30 12:00:00": "which is no TIMESTAMP",
    "1,1,1.5,1.0,n,today": "`at` holds 'today', which is no TIMESTAMP",
    "1,1,1.5": "does not have 6 values",
    f"1,1,1.5,1.0,n,{AT},7": "does not have 6 values",
    "\x01\x02\x03\x04\x05\x06\x07": "does not have 6 values",
}
# Files of their own: what is wrong with them could spoil more than a line.
BAD_CSV_FILES = {
    f'12,1,1.0,1.0,"never closed,{AT}\n13,1,1.0,1.0,n,{AT}\n'.encode(): "does not have 6 values",
    f"10,1,1.0,1.0,Zürich,{AT}\n".encode("latin-1"): "which is no UTF-8",
}
ODD_CSV = [
    f"5,1,1.5,NaN,n,{AT}",
    f"6,2147483647,999.99,Infinity,n,{AT}",
    f"7,2147483647,-999.99,-0.0,n,{AT}",
    f'8,1,1.0,-Infinity,"two\nlines, and ""quotes""",{AT}',
    f"9,1,1.0,1.0,{'h' * 100_000},{AT}",
]


def _record(**changed: object) -> str:
    return json.dumps({"k": 1, "v": 1, "d": 1.5, "x": 1.0, "name": "n", "at": AT} | changed)


BAD_JSON = {
    '{"k":1,': "is no JSON object",
    "[1, 2]": "is no JSON object",
    "7": "is no JSON object",
    "null": "is no JSON object",
    '{"k":1} {"k":2}': "is no JSON object",
    '{"k":1, "k":2}': "is no JSON object",
    _record(x=float("nan")): "is no JSON object",
    _record(name=0).replace("0", "[" * 2000 + "]" * 2000): "is no JSON object",
    _record(k="x"): "`k` holds 'x', which is no INT",
    _record(v=[1]): "`v` holds '[1]', which is no INT",
    _record(v=99999999999): "`v` holds '99999999999', which is no INT",
    _record(v=True): "`v` holds 'true', which is no INT",
    _record(d=12345.6): "`d` holds '12345.6', which is no DECIMAL(5,2)",
    _record(x=0).replace('"x": 0', '"x": 1e999'): "`x` holds a number that is too large",
    _record(at=None): "`at` is NULL",
    _record(at=1767268805): "`at` holds '1767268805', which is no TIMESTAMP",
}
ODD_JSON = [
    _record(k=2, x="Infinity"),
    _record(k=3, x=-0.0),
    _record(k=4, d="1.50", more={"nobody": "reads"}),
    _record(k=5, name=None),
    '{"at": "' + AT + '"}',
]
