"""Functions of Spark that have no place in a continuous query, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

_CLOCK = (
    "it depends on the clock, so the same rows would not give the same result; use the stream's event time"
)
_RANDOM = "it is random, so the same rows would not give the same result; compute it before the rows come in"
_PHYSICAL = "it depends on how the rows are spread over machines; use columns of the rows"
_ORDER = "its result depends on the order of rows, which a stream does not have; use min or max"
_COLLECTION = "results are scalars; use count, min, max or one row per value"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        ("now", "current_timestamp", "current_date", "curdate", "current_time", "localtimestamp", "sysdate"),
        _CLOCK,
    ),
    **dict.fromkeys(("rand", "random", "randn", "uuid", "shuffle", "randstr", "uniform"), _RANDOM),
    **dict.fromkeys(
        (
            "monotonically_increasing_id",
            "spark_partition_id",
            "input_file_name",
            "current_user",
            "user",
            "session_user",
        ),
        _PHYSICAL,
    ),
    **dict.fromkeys(("first", "last", "first_value", "last_value", "any_value"), _ORDER),
    **dict.fromkeys(
        (
            "collect_list",
            "collect_set",
            "array_agg",
            "listagg",
            "string_agg",
            "group_concat",
            "array",
            "map",
            "struct",
        ),
        _COLLECTION,
    ),
    **dict.fromkeys(
        ("row_number", "rank", "dense_rank", "ntile", "lag", "lead"),
        "window functions OVER are not supported; use ORDER BY … LIMIT k in a tick, or join an aggregate",
    ),
    **dict.fromkeys(
        ("approx_count_distinct", "percentile", "percentile_approx", "approx_percentile", "median", "mode"),
        "its result cannot be made the same on every engine; use count(DISTINCT x), avg, min or max",
    ),
    **dict.fromkeys(("hash", "xxhash64", "crc32"), "engines hash differently; compare the values themselves"),
    "bround": "engines differ in it; use round, which rounds half away from zero",
    "reverse": "engines differ on combined characters; use right or substring",
    "initcap": "engines differ in what a word is; use upper and lower",
    "ilike": "engines differ in letters beyond ASCII; write lower(a) LIKE 'pattern in lower case'",
    "repeat": "its result has no bounded size; use lpad or rpad with a constant length",
    "date_format": "engines differ in formats; use year, month, day … or CAST to STRING",
    "from_unixtime": "it writes a text; use timestamp_seconds(n)",
    "try_cast": "write TRY_CAST(x AS type), which is the same as CAST here",
    "try_add": "every expression gives NULL instead of an error already; write a + b",
    "try_subtract": "every expression gives NULL instead of an error already; write a - b",
    "try_multiply": "every expression gives NULL instead of an error already; write a * b",
    "try_divide": "every expression gives NULL instead of an error already; write a / b",
    "try_mod": "every expression gives NULL instead of an error already; write a % b",
}
