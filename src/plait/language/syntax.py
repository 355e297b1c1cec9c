"""Which syntax a query may use: an allow-list of the parser's node classes and of the parts of each.

The parser accepts the grammar of some thirty databases. What is not listed here is refused by name, so
that nothing it happens to swallow is silently dropped. Parts that are listed but not always fit (a
subquery in an expression, DISTINCT outside `count`) are refused where they are bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sqlglot import exp

from plait.errors import PlaitError, Source, Span, UnsupportedError
from plait.language.dialect import WindowClause, WindowTable
from plait.language.spans import span_of

_BINARY = frozenset({"this", "expression"})
_UNARY = frozenset({"this"})

ALLOWED: Mapping[type[exp.Expr], frozenset[str]] = MappingProxyType(
    {
        # blocks
        exp.Select: frozenset(
            {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "with_"}
        ),
        exp.Union: frozenset({"this", "expression", "order", "limit", "with_"}),
        exp.Subquery: frozenset({"this", "alias", "window", "with_"}),
        exp.With: frozenset({"expressions"}),
        exp.CTE: frozenset({"this", "alias"}),
        exp.From: _UNARY,
        exp.Table: frozenset({"this", "alias", "window"}),
        exp.TableAlias: frozenset({"this", "columns"}),
        exp.Join: frozenset({"this", "side", "kind", "on", "using"}),
        exp.Where: _UNARY,
        exp.Group: frozenset({"expressions"}),
        exp.Having: _UNARY,
        exp.Order: frozenset({"expressions"}),
        exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
        exp.Limit: frozenset({"expression"}),
        WindowClause: frozenset({"size", "slide", "unit", "partition"}),
        WindowTable: frozenset({"function", "table", "descriptor", "size", "slide", "offset", "alias"}),
        # names and constants
        exp.Column: frozenset({"this", "table", "db", "catalog"}),
        exp.Identifier: frozenset({"this", "quoted"}),
        exp.Star: frozenset(),
        exp.Alias: frozenset({"this", "alias"}),
        exp.Var: _UNARY,
        exp.Literal: frozenset({"this", "is_string"}),
        exp.Boolean: _UNARY,
        exp.Null: frozenset(),
        exp.Interval: frozenset({"this", "unit"}),
        # expressions
        exp.Paren: _UNARY,
        exp.And: _BINARY,
        exp.Or: _BINARY,
        exp.Not: _UNARY,
        exp.EQ: _BINARY,
        exp.NEQ: _BINARY,
        exp.LT: _BINARY,
        exp.LTE: _BINARY,
        exp.GT: _BINARY,
        exp.GTE: _BINARY,
        exp.NullSafeEQ: _BINARY,
        exp.NullSafeNEQ: _BINARY,
        exp.Add: _BINARY,
        exp.Sub: _BINARY,
        exp.Mul: _BINARY,
        exp.Div: _BINARY | {"typed", "safe"},
        exp.IntDiv: _BINARY,
        exp.Mod: _BINARY,
        exp.DPipe: _BINARY | {"safe"},
        exp.Neg: _UNARY,
        exp.Is: _BINARY,
        exp.Between: frozenset({"this", "low", "high"}),
        exp.In: frozenset({"this", "expressions"}),
        exp.Like: _BINARY,
        exp.RegexpLike: _BINARY,
        exp.Escape: _BINARY,
        exp.Case: frozenset({"this", "ifs", "default"}),
        exp.If: frozenset({"this", "true"}),
        exp.Cast: frozenset({"this", "to"}),
        exp.TryCast: frozenset({"this", "to", "safe", "requires_string"}),
        exp.DataType: frozenset({"this", "expressions", "nested"}),
        exp.DataTypeParam: _UNARY,
        exp.Extract: _BINARY,
        exp.Anonymous: frozenset({"this", "expressions"}),
        exp.Distinct: frozenset({"expressions"}),
        exp.Filter: _BINARY,
    }
)

_KEYWORDS = re.compile(r"[A-Z]{2,}(?: [A-Z]{2,})*")
# How many characters keywords may stand before what they introduce.
_FAR = 200

_JOIN_OUTSIDE = "write it as a subquery in FROM and join it"
_NO_NESTING = "columns hold plain values, no arrays, maps or structs: give one row for each element instead"
_NO_RECURSION = "write out the steps as queries of WITH, each reading the one before"
_NO_BITS = "use arithmetic: DIV and % take a number apart"
_ELSEWHERE = "docs/language.md says what a query may be made of"

# What is refused: the construct's name as users know it, and what to do instead.
_REFUSED_PARTS: Mapping[tuple[type[exp.Expr], str], tuple[str, str]] = MappingProxyType(
    {
        (exp.Select, "distinct"): ("SELECT DISTINCT", "use GROUP BY over a window"),
        (exp.Select, "hint"): ("a hint /*+ … */", "leave it out: Plait plans by itself"),
        (exp.Select, "laterals"): ("LATERAL VIEW", _NO_NESTING),
        (exp.Select, "qualify"): ("QUALIFY", "use a subquery and WHERE"),
        (exp.Select, "windows"): (
            "the WINDOW clause",
            "write the window at the stream: `s [RANGE 5 MINUTES]`",
        ),
        (exp.Select, "offset"): ("OFFSET", "use ORDER BY … LIMIT"),
        (exp.Select, "sort"): ("SORT BY", "use ORDER BY … LIMIT"),
        (exp.Select, "cluster"): ("CLUSTER BY", "leave it out: Plait plans by itself"),
        (exp.Select, "distribute"): ("DISTRIBUTE BY", "leave it out: Plait plans by itself"),
        (exp.Select, "into"): (
            "SELECT … INTO",
            "write CREATE CONTINUOUS QUERY name INTO 'folder' AS SELECT …",
        ),
        (exp.Select, "locks"): ("FOR UPDATE", "leave it out: queries only read"),
        (exp.Select, "connect"): ("CONNECT BY", _NO_RECURSION),
        (exp.Select, "kind"): ("SELECT AS …", "select the columns one by one"),
        (exp.Union, "distinct"): ("UNION without ALL", "use UNION ALL"),
        (exp.Union, "by_name"): ("UNION BY NAME", "select the columns in the same order and use UNION ALL"),
        (exp.Union, "offset"): ("OFFSET", "use ORDER BY … LIMIT"),
        (exp.With, "recursive"): ("WITH RECURSIVE", _NO_RECURSION),
        (exp.CTE, "materialized"): ("MATERIALIZED", "leave it out: Plait decides what is shared"),
        (exp.Table, "sample"): ("TABLESAMPLE", "sample by a filter on a column"),
        (exp.Table, "pivots"): ("PIVOT", "use aggregates with FILTER (WHERE …), one for each value"),
        (exp.Table, "joins"): (
            "a parenthesised join",
            "leave out the parentheses, or write (SELECT … FROM …)",
        ),
        (exp.Table, "laterals"): ("LATERAL VIEW", _NO_NESTING),
        (exp.Table, "version"): (
            "time travel",
            "leave it out: a table is read as it is when its rows are joined",
        ),
        (exp.Table, "db"): ("a qualified name", "streams, tables and queries have plain names"),
        (exp.Table, "catalog"): ("a qualified name", "streams, tables and queries have plain names"),
        (exp.Table, "hints"): ("a table hint", "leave it out: Plait plans by itself"),
        (exp.Subquery, "sample"): ("TABLESAMPLE", "sample by a filter on a column"),
        (exp.Subquery, "pivots"): ("PIVOT", "use aggregates with FILTER (WHERE …), one for each value"),
        (exp.Subquery, "order"): ("ORDER BY after a parenthesised query", "write it inside the parentheses"),
        (exp.Subquery, "limit"): ("LIMIT after a parenthesised query", "write it inside the parentheses"),
        (exp.Subquery, "joins"): ("a parenthesised join", "leave out the parentheses"),
        (exp.Join, "method"): ("a NATURAL or ASOF join", "name the columns: JOIN … USING (…) or ON …"),
        (exp.Join, "match_condition"): ("an ASOF join", "use a windowed join with a condition"),
        (exp.Join, "hint"): ("a join hint", "leave it out: Plait plans by itself"),
        (exp.Join, "global_"): ("a GLOBAL join", "leave it out: Plait plans by itself"),
        (exp.Group, "all"): ("GROUP BY ALL", "name the columns"),
        (exp.Group, "rollup"): ("ROLLUP", "use UNION ALL of several GROUP BYs"),
        (exp.Group, "cube"): ("CUBE", "use UNION ALL of several GROUP BYs"),
        (exp.Group, "grouping_sets"): ("GROUPING SETS", "use UNION ALL of several GROUP BYs"),
        (exp.Group, "totals"): ("WITH TOTALS", "use UNION ALL of several GROUP BYs"),
        (exp.Order, "this"): (
            "ORDER BY inside an aggregate",
            "leave it out: aggregates do not depend on the order of rows",
        ),
        (exp.In, "query"): ("IN (SELECT …)", _JOIN_OUTSIDE),
        (exp.In, "unnest"): ("IN UNNEST", _NO_NESTING),
        (exp.In, "field"): ("IN without a list", "write the values in parentheses"),
        (exp.Star, "except_"): ("* EXCEPT", "name the columns"),
        (exp.Star, "replace"): ("* REPLACE", "name the columns"),
        (exp.Star, "rename"): ("* RENAME", "name the columns"),
        (exp.Cast, "format"): (
            "CAST … FORMAT",
            "cast without a format; year(), month(), day() … take a time apart",
        ),
        (exp.Distinct, "on"): ("DISTINCT ON", "use GROUP BY over a window"),
    }
)

_REFUSED_CLASSES: Mapping[type[exp.Expr], tuple[str, str]] = MappingProxyType(
    {
        exp.Intersect: ("INTERSECT", "join the two on all columns"),
        exp.Except: ("EXCEPT", "use a LEFT JOIN and keep the rows without a match"),
        exp.Values: ("VALUES", "put the rows into a table and CREATE TABLE it"),
        exp.Window: (
            "a window function OVER (…)",
            "aggregate in a subquery in FROM and join it with the rows",
        ),
        exp.WithinGroup: ("WITHIN GROUP", "aggregates do not depend on the order of rows; use min or max"),
        exp.IgnoreNulls: ("IGNORE NULLS", "leave it out: aggregates skip NULLs"),
        exp.RespectNulls: ("RESPECT NULLS", "leave it out: aggregates skip NULLs, count(*) counts all rows"),
        exp.Exists: ("EXISTS (SELECT …)", _JOIN_OUTSIDE),
        exp.All: ("ALL (SELECT …)", _JOIN_OUTSIDE),
        exp.Any: ("ANY (SELECT …)", _JOIN_OUTSIDE),
        exp.Lateral: ("LATERAL", _JOIN_OUTSIDE),
        exp.Unnest: ("UNNEST", _NO_NESTING),
        exp.Tuple: ("a tuple (a, b)", "compare the values one by one"),
        exp.Bracket: ("a subscript [ ]", _NO_NESTING),
        exp.Dot: ("a field access", _NO_NESTING),
        exp.Lambda: ("a lambda", _NO_NESTING),
        exp.JSONExtract: ("a field access", _NO_NESTING),
        exp.ILike: ("ILIKE", "use lower(a) LIKE 'pattern in lower case'"),
        exp.Rollup: ("ROLLUP", "use UNION ALL of several GROUP BYs"),
        exp.Cube: ("CUBE", "use UNION ALL of several GROUP BYs"),
        exp.GroupingSets: ("GROUPING SETS", "use UNION ALL of several GROUP BYs"),
        exp.BitwiseAnd: ("the operator &", _NO_BITS),
        exp.BitwiseOr: ("the operator |", _NO_BITS),
        exp.BitwiseXor: ("the operator ^", _NO_BITS),
        exp.BitwiseNot: ("the operator ~", _NO_BITS),
        exp.BitwiseLeftShift: ("the operator <<", _NO_BITS),
        exp.BitwiseRightShift: ("the operator >>", _NO_BITS),
        exp.Placeholder: ("a placeholder", "write the value; `${NAME}` works in WITH options only"),
        exp.Parameter: ("a parameter", "write the value; `${NAME}` works in WITH options only"),
        exp.HexString: ("a binary literal X'…'", "write a number, or a text in quotes"),
        exp.IntervalSpan: ("an interval from … TO …", "write one unit: INTERVAL '90' MINUTES"),
        exp.Kwarg: ("a named argument", "give the arguments in order"),
        exp.PropertyEQ: ("a named argument", "give the arguments in order"),
        exp.AtTimeZone: ("AT TIME ZONE", "all times are UTC"),
        exp.Collate: ("COLLATE", "text is compared by its code points"),
        exp.SetOperation: ("this set operation", "use UNION ALL"),
    }
)


def check_syntax(query: exp.Expr, source: Source) -> Iterator[PlaitError]:
    """Everything in a query that is not on the list. Nothing below a refused part is looked at."""
    stack: list[exp.Expr] = [query]
    while stack:
        node = stack.pop()
        allowed = ALLOWED.get(type(node))
        if allowed is None:
            yield _refused(node, _class_description(node), source)
            continue
        for part, value in node.args.items():
            if value is None or value is False or value == []:
                continue
            if part not in allowed:
                described = _REFUSED_PARTS.get((type(node), part), (_readable(part), _ELSEWHERE))
                yield _refused_part(node, _first_node(value), described, source)
                continue
            if isinstance(value, exp.Expr):
                stack.append(value)
            elif isinstance(value, list):
                stack.extend(child for child in value if isinstance(child, exp.Expr))


def _class_description(node: exp.Expr) -> tuple[str, str]:
    for base in type(node).__mro__:
        if base in _REFUSED_CLASSES:
            return _REFUSED_CLASSES[base]
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name().lower()}", "docs/functions.md lists the functions there are"
    return _readable(type(node).__name__), _ELSEWHERE


def _readable(name: str) -> str:
    return f"`{name.strip('_').replace('_', ' ').upper()}`"


def _first_node(value: object) -> exp.Expr | None:
    if isinstance(value, list):
        value = value[0]
    return value if isinstance(value, exp.Expr) else None


def _refused_part(
    node: exp.Expr, value: exp.Expr | None, described: tuple[str, str], source: Source
) -> PlaitError:
    error = _refused(value or node, described, source)
    keywords = _KEYWORDS.search(described[0])
    if keywords is not None:
        error.span = _with_keywords(keywords[0], node, value, source)
    return error


def _with_keywords(keywords: str, node: exp.Expr, value: exp.Expr | None, source: Source) -> Span:
    """The place of a refused part with its keywords, which the tree does not place.

    They stand in the text before what they introduce, or else somewhere in the node.
    """
    whole = span_of(node, source)
    part = whole if value is None else span_of(value, source)
    pattern = re.compile(r"\b" + r"\s+".join(keywords.split()) + r"\b", re.IGNORECASE)
    if part != whole:
        introduced = part.start
    else:
        inside = node.expression if isinstance(node, exp.Union) else node
        introduced = min(
            (span_of(name, source).start for name in inside.find_all(exp.Identifier, exp.Literal)), default=0
        )
    before = list(pattern.finditer(source.text, max(0, introduced - _FAR), introduced))
    found = before[-1] if before else pattern.search(source.text, whole.start, whole.end)
    if found is None:
        return part
    return Span(source, found.start(), found.end() if part == whole else max(part.end, found.end()))


def _refused(node: exp.Expr, described: tuple[str, str], source: Source) -> PlaitError:
    construct, hint = described
    return UnsupportedError(
        "unsupported-syntax", f"Plait does not support {construct}", hint=hint, span=span_of(node, source)
    )
