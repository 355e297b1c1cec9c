"""Properties of the evaluator over small random data with NULLs, equal timestamps and far times.

Plans are built by hand, so that nothing of the language is needed. The expected rows come from a few lines of
Python that follow the definition row by row: a second opinion, slow and obvious.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.catalog import Catalog, ColumnDefinition, Stream
from plait.engines.duckdb import Database
from plait.engines.event_times import LAST_EVENT_TIME_US
from plait.evaluator import StoredData, difference, evaluate
from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import TRUE, Call, Column, Edge, Expression, Literal, WindowEdge
from plait.expressions.types import BIGINT, INT, TIMESTAMP
from plait.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    RangeWindow,
    RowTicking,
    RowWindow,
    SortKey,
    StreamScan,
    Ticking,
    TickWindow,
    Top,
    Union,
    Window,
    sources_of,
)
from plait.workload import Query

SECOND = 1_000_000
DELAY = SECOND // 2
NOON = 1_767_268_800 * SECOND  # 2026-01-01 12:00:00
EPOCH = datetime(1970, 1, 1)

Row: TypeAlias = tuple[int | None, int | None, int]  # key, value, event time in microseconds
Rows: TypeAlias = list[Row]

FIELDS = (Field("key", INT), Field("value", INT), Field("at", TIMESTAMP))
STREAMS = ("s", "u", "v")
S, U, V = (StreamScan(name, FIELDS) for name in STREAMS)
KEY, VALUE = Column(0, INT), Column(1, INT)
END = WindowEdge(Edge.END)
COUNT, SUM = AggregateCall("count"), AggregateCall("sum", (VALUE,))

CATALOG = Catalog(
    streams={
        name: Stream(
            name,
            tuple(ColumnDefinition(field.name, field.type) for field in FIELDS),
            connector="",
            event_time="at",
            delay_us=DELAY,
        )
        for name in STREAMS
    }
)

# Few values close together, so that rows meet, tie and lie exactly on edges; now and then a far one.
near_times = st.sampled_from([NOON + half * SECOND // 2 for half in range(9)])
event_times = st.one_of(
    near_times, near_times, near_times, st.sampled_from([1, SECOND, NOON + SECOND - 1, LAST_EVENT_TIME_US])
)
keys = st.sampled_from([None, 0, 1, 1])
values = st.sampled_from([None, -1, 1, 2])
rows = st.lists(st.tuples(keys, values, event_times), max_size=8)
near_rows = st.lists(st.tuples(keys, values, near_times), min_size=1, max_size=6)
spans = st.integers(1, 5).map(lambda half_seconds: half_seconds * SECOND // 2)


def examples(times: int = 1) -> settings:
    """How many examples: few in every test run, many in `make fuzz`."""
    return settings(max_examples=times * int(os.environ.get("PLAIT_FUZZ_EXAMPLES", "10")), deadline=None)


@st.composite
def tick_windows(draw: st.DrawFn) -> TickWindow:
    slide = draw(spans)
    return TickWindow(draw(spans), slide, draw(st.integers(0, slide - 1)))


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database(threads=1) as database:
        yield database


def run(
    database: Database,
    plan: Node,
    data: dict[str, Rows],
    *,
    closed_only: bool = False,
    start_us: int | None = None,
) -> list[tuple[object, ...]]:
    """The plan's rows, timestamps in microseconds."""
    stored = {name: [(key, value, time_of(at)) for key, value, at in given] for name, given in data.items()}
    query = Query("q", plan, tuple(f"column{k}" for k in range(len(plan.types))))
    start = None if start_us is None else time_of(start_us)
    with StoredData.from_rows(CATALOG, stored, database=database) as loaded:
        result = evaluate(query, loaded, closed_only=closed_only, start=start)
    return [tuple(us_of(v) if isinstance(v, datetime | str) else v for v in row) for row in result.rows]


def time_of(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def us_of(time: datetime | str) -> int:
    if isinstance(time, str):  # beyond 9999, where Python's datetime ends
        day, clock = time.split(" ")
        year, month_and_day = day.split("-", 1)
        before = datetime.fromisoformat(f"{int(year) - 400:04}-{month_and_day} {clock}")
        return us_of(before) + 146_097 * 86_400 * SECOND
    since = time - EPOCH
    return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds


def equal(left: Column, right: Column) -> Expression:
    return Call("eq", (left, right))


def positive(column: Column) -> Expression:
    return Call("gt", (column, Literal(0, INT)))


def ticks_of(window: TickWindow, at: int) -> list[int]:
    """The ticks whose window holds the event time, tried one by one."""
    first = at - at % window.slide_us + window.offset_us - window.slide_us
    candidates = range(first, at + window.range_us + 1, window.slide_us)
    return [tick for tick in candidates if tick - window.range_us <= at < tick]


def relations(window: TickWindow, given: Rows) -> dict[int, Rows]:
    by_tick: dict[int, Rows] = defaultdict(list)
    for row in given:
        for tick in ticks_of(window, row[2]):
            by_tick[tick].append(row)
    return by_tick


def meets(left: int, left_range: int, right: int, right_range: int) -> bool:
    return right - left < left_range and left - right < right_range


def total(values: Iterable[int | None]) -> int | None:
    present = [value for value in values if value is not None]
    return sum(present) if present else None


def assert_same(expected: Iterable[tuple[object, ...]], actual: Iterable[tuple[object, ...]]) -> None:
    assert not (found := difference(expected, actual)), found


# --- windows


@examples()
@given(rows, tick_windows())
def test_a_window_is_the_difference_of_two_prefixes(database: Database, s: Rows, window: TickWindow) -> None:
    def prefix(before: int) -> Counter[Row]:
        return Counter(row for row in s if row[2] < before)

    expected = []
    for tick in {tick for row in s for tick in ticks_of(window, row[2])}:
        held = prefix(tick) - prefix(tick - window.range_us)
        expected.append((tick, held.total(), total(value for _, value, _ in held.elements())))
    plan = Project(
        Aggregate(Window(S, window), (), (COUNT, SUM)), (END, Column(0, BIGINT), Column(1, BIGINT))
    )
    assert_same(expected, run(database, plan, {"s": s}))


@examples()
@given(rows, spans)
def test_tumbling_windows_partition_the_rows(database: Database, s: Rows, span: int) -> None:
    assert_same(s, run(database, Window(S, TickWindow(span, span)), {"s": s}))


@examples()
@given(rows, spans, st.integers(1, 4))
def test_a_sliding_window_is_the_union_of_its_panes(
    database: Database, s: Rows, slide: int, panes: int
) -> None:
    def with_end(window: TickWindow) -> Node:
        return Project(Window(S, window), (KEY, VALUE, END))

    tumbling = run(database, with_end(TickWindow(slide, slide)), {"s": s})
    expected = [(key, value, int(str(end)) + k * slide) for key, value, end in tumbling for k in range(panes)]
    assert_same(expected, run(database, with_end(TickWindow(panes * slide, slide)), {"s": s}))


@examples()
@given(rows, st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_row_windows_number_the_rows(
    database: Database, s: Rows, count: int, slide: int, partitioned: bool
) -> None:
    parts: dict[int | None, Rows] = defaultdict(list)
    for row in s:
        parts[row[0] if partitioned else None].append(row)
    expected = []
    for part in parts.values():
        in_order = sorted(part, key=lambda r: (r[2], *((v is not None, v or 0) for v in r[:2])))
        for closing in range(slide, len(in_order) + 1, slide):
            window = in_order[max(0, closing - count) : closing]
            values = total(value for _, value, _ in window)
            expected.append((len(window), values, window[0][2], in_order[closing - 1][2] + 1))
    held = Window(S, RowWindow(count, slide, (0,) if partitioned else ()))
    aggregate = Aggregate(held, (), (COUNT, SUM))
    plan = Project(aggregate, (Column(0, BIGINT), Column(1, BIGINT), WindowEdge(Edge.START), END))
    assert_same(expected, run(database, plan, {"s": s}))


@examples()
@given(rows, tick_windows(), st.integers(1, 3))
def test_top_takes_the_first_rows_of_every_tick(
    database: Database, s: Rows, window: TickWindow, count: int
) -> None:
    expected: Rows = []
    for held in relations(window, s).values():
        # Descending with NULLs last, then all columns ascending with NULLs first.
        held.sort(key=lambda r: (r[1] is None, -(r[1] or 0), r[0] is not None, r[0] or 0, r[2]))
        expected += held[:count]
    plan = Top(Window(S, window), (SortKey(VALUE, descending=True, nulls_first=False),), count)
    assert_same(expected, run(database, plan, {"s": s}))


@examples()
@given(rows, tick_windows(), tick_windows())
def test_a_roll_up_uses_the_tick_less_a_microsecond(
    database: Database, s: Rows, inner: TickWindow, outer: TickWindow
) -> None:
    counts: Counter[int] = Counter()
    for tick in relations(inner, s):
        counts.update(ticks_of(outer, tick - 1))
    per_tick = Aggregate(Window(S, inner), (), (COUNT,))
    plan = Project(Aggregate(Window(per_tick, outer), (), (COUNT,)), (END, Column(0, BIGINT)))
    assert_same(counts.items(), run(database, plan, {"s": s}))


# --- joins


@examples()
@given(rows, rows, rows, spans, spans, spans)
def test_rows_join_pair_by_pair(
    database: Database, s: Rows, u: Rows, v: Rows, range_s: int, range_u: int, range_v: int
) -> None:
    expected = [
        (*a, *b, *c)
        for a, b, c in product(s, u, v)
        if a[0] is not None
        and a[0] == b[0] == c[0]
        and meets(a[2], range_s, b[2], range_u)
        and meets(a[2], range_s, c[2], range_v)
        and meets(b[2], range_u, c[2], range_v)
    ]
    inputs = (
        Window(S, RangeWindow(range_s)),
        Window(U, RangeWindow(range_u)),
        Window(V, RangeWindow(range_v)),
    )
    same_key = Call("and", (equal(KEY, Column(3, INT)), equal(KEY, Column(6, INT))))
    flat = run(database, Join(inputs, same_key), {"s": s, "u": u, "v": v})
    assert_same(expected, flat)
    nested = Filter(Join((Join(inputs[:2], TRUE), inputs[2]), TRUE), same_key)
    assert_same(flat, run(database, nested, {"s": s, "u": u, "v": v}))


@examples()
@given(rows, rows, spans, spans)
def test_a_join_is_symmetric(database: Database, s: Rows, u: Rows, range_s: int, range_u: int) -> None:
    left, right = Window(S, RangeWindow(range_s)), Window(U, RangeWindow(range_u))
    one = run(database, Join((left, right), equal(KEY, Column(3, INT))), {"s": s, "u": u})
    other = run(database, Join((right, left), equal(KEY, Column(3, INT))), {"s": s, "u": u})
    assert_same(one, [(*row[3:], *row[:3]) for row in other])


@examples()
@given(rows, rows, tick_windows(), spans)
def test_filters_commute_with_joins(
    database: Database, s: Rows, u: Rows, window: TickWindow, range_us: int
) -> None:
    other = TickWindow(range_us, window.slide_us, window.offset_us)
    same_key = equal(KEY, Column(3, INT))
    for left, right in (
        (Window(S, RangeWindow(range_us)), Window(U, RangeWindow(window.range_us))),
        (Window(S, window), Window(U, other)),
    ):
        both = Call("and", (positive(VALUE), positive(Column(4, INT))))
        above = Filter(Join((left, right), same_key), both)
        filtered = Join((Filter(left, positive(VALUE)), Filter(right, positive(VALUE))), same_key)
        below_windows = Join(
            (
                Window(Filter(S, positive(VALUE)), left.window),
                Window(Filter(U, positive(VALUE)), right.window),
            ),
            same_key,
        )
        expected = run(database, above, {"s": s, "u": u})
        assert_same(expected, run(database, filtered, {"s": s, "u": u}))
        assert_same(expected, run(database, below_windows, {"s": s, "u": u}))


@examples()
@given(rows, rows, spans, spans, st.sampled_from(OuterKind))
def test_an_outer_join_is_the_inner_join_and_the_rows_without_partner(
    database: Database, s: Rows, u: Rows, range_s: int, range_u: int, kind: OuterKind
) -> None:
    def partners(a: Row, b: Row) -> bool:
        return a[0] is not None and a[0] == b[0] and meets(a[2], range_s, b[2], range_u)

    nothing = (None, None, None)
    expected: list[tuple[object, ...]] = [(*a, *b) for a, b in product(s, u) if partners(a, b)]
    if kind in (OuterKind.LEFT, OuterKind.FULL):
        expected += [(*a, *nothing) for a in s if not any(partners(a, b) for b in u)]
    if kind in (OuterKind.RIGHT, OuterKind.FULL):
        expected += [(*nothing, *b) for b in u if not any(partners(a, b) for a in s)]
    left, right = Window(S, RangeWindow(range_s)), Window(U, RangeWindow(range_u))
    plan = OuterJoin(kind, left, right, equal(KEY, Column(3, INT)))
    assert_same(expected, run(database, plan, {"s": s, "u": u}))


@examples()
@given(rows, rows, tick_windows(), spans, st.sampled_from([None, *OuterKind]))
def test_ticks_join_tick_by_tick(
    database: Database, s: Rows, u: Rows, window: TickWindow, range_us: int, kind: OuterKind | None
) -> None:
    other = TickWindow(range_us, window.slide_us, window.offset_us)
    left, right = relations(window, s), relations(other, u)
    groups: dict[tuple[int, int | None], list[int | None]] = defaultdict(list)
    for tick in {*left, *right}:
        matched_right: Counter[Row] = Counter()
        for a in left.get(tick, []):
            partners = [b for b in right.get(tick, []) if a[0] is not None and a[0] == b[0]]
            matched_right.update(partners)
            if partners or kind in (OuterKind.LEFT, OuterKind.FULL):
                groups[tick, a[0]] += [b[1] for b in partners] or [None]
        if kind in (OuterKind.RIGHT, OuterKind.FULL):
            alone = [b for b in right.get(tick, []) if b not in matched_right]
            if alone:
                groups[tick, None] += [b[1] for b in alone]
    expected = [(tick, key, len(values), total(values)) for (tick, key), values in groups.items()]
    inputs = (Window(S, window), Window(U, other))
    same_key = equal(KEY, Column(3, INT))
    joined = Join(inputs, same_key) if kind is None else OuterJoin(kind, *inputs, same_key)
    aggregate = Aggregate(joined, (KEY,), (COUNT, AggregateCall("sum", (Column(4, INT),))))
    plan = Project(aggregate, (END, KEY, Column(1, BIGINT), Column(2, BIGINT)))
    assert_same(expected, run(database, plan, {"s": s, "u": u}))


@examples()
@given(rows, rows, spans, spans, tick_windows())
def test_a_combination_happens_at_its_last_row(
    database: Database, s: Rows, u: Rows, range_s: int, range_u: int, window: TickWindow
) -> None:
    counts: Counter[int] = Counter()
    for a, b in product(s, u):
        if meets(a[2], range_s, b[2], range_u):
            counts.update(ticks_of(window, max(a[2], b[2])))
    joined = Join((Window(S, RangeWindow(range_s)), Window(U, RangeWindow(range_u))), TRUE)
    plan = Project(Aggregate(Window(joined, window), (), (COUNT,)), (END, Column(0, BIGINT)))
    assert_same(counts.items(), run(database, plan, {"s": s, "u": u}))


@examples()
@given(rows, rows, tick_windows())
def test_counts_of_a_union_add_up(database: Database, s: Rows, u: Rows, window: TickWindow) -> None:
    def counts(plan: Node) -> Counter[object]:
        found = run(database, Project(plan, (END, Column(0, BIGINT))), {"s": s, "u": u})
        return Counter({end: int(str(count)) for end, count in found})

    def count_of(node: Node) -> Node:
        return Aggregate(node, (), (COUNT,))

    separately = counts(count_of(Window(S, window))) + counts(count_of(Window(U, window)))
    assert counts(count_of(Window(Union((S, U)), window))) == separately
    assert counts(count_of(Union((Window(S, window), Window(U, window))))) == separately


# --- open and closed, late starts

MINUTES = TickWindow(2 * SECOND, SECOND)
PER_TICK = Aggregate(Window(S, MINUTES), (KEY,), (COUNT, SUM))
UNMATCHED = OuterJoin(
    OuterKind.LEFT,
    Window(S, RangeWindow(2 * SECOND)),
    Window(U, RangeWindow(SECOND)),
    equal(KEY, Column(3, INT)),
)
OTHER_PER_TICK = Aggregate(Window(U, TickWindow(SECOND, SECOND)), (KEY,), (COUNT,))
TICK_PLANS: dict[str, Node] = {
    "sliding": PER_TICK,
    "roll-up": Aggregate(Window(PER_TICK, TickWindow(3 * SECOND, SECOND)), (), (COUNT,)),
    "ticks joined": Join((PER_TICK, OTHER_PER_TICK), equal(KEY, Column(3, INT))),
    "ticks outer joined": OuterJoin(OuterKind.FULL, PER_TICK, OTHER_PER_TICK, equal(KEY, Column(3, INT))),
    "over an inner join": Aggregate(
        Window(
            Join((Window(S, RangeWindow(SECOND)), Window(U, RangeWindow(2 * SECOND))), TRUE),
            TickWindow(SECOND, SECOND),
        ),
        (),
        (COUNT,),
    ),
}
PLANS: dict[str, Node] = {
    **TICK_PLANS,
    "left": UNMATCHED,
    "full": OuterJoin(OuterKind.FULL, UNMATCHED.left, UNMATCHED.right, UNMATCHED.predicate),
    "outer of outer": OuterJoin(
        OuterKind.LEFT, Window(V, RangeWindow(SECOND)), UNMATCHED, equal(KEY, Column(3, INT))
    ),
    "aggregate of left": Aggregate(Window(UNMATCHED, TickWindow(SECOND, SECOND)), (), (COUNT,)),
    "row windows": Aggregate(Window(S, RowWindow(3, 2)), (), (COUNT, SUM)),
    "row windows of left": Aggregate(Window(UNMATCHED, RowWindow(3, 2)), (), (COUNT, SUM)),
    "union of ticks": Aggregate(
        Union(
            (
                Project(Window(S, MINUTES), (KEY,)),
                Project(Window(UNMATCHED, MINUTES), (KEY,)),
            )
        ),
        (),
        (COUNT,),
    ),
}


def with_tick(plan: Node) -> Node:
    """The plan with `window_end` as its last column where it ticks, to tell equal rows of different ticks."""
    if not isinstance(plan.timing, Ticking | RowTicking):
        return plan
    return Project(plan, (*(Column(k, type_) for k, type_ in enumerate(plan.types)), END))


@examples(3)
@given(st.sampled_from(sorted(PLANS)), *[near_rows] * 6)
def test_what_is_closed_stays_whatever_comes(
    database: Database, name: str, s: Rows, u: Rows, v: Rows, more_s: Rows, more_u: Rows, more_v: Rows
) -> None:
    now = {"s": s, "u": u, "v": v}
    plan = with_tick(PLANS[name])
    streams, _ = sources_of(plan)
    watermark = min(max((row[2] for row in now[stream]), default=DELAY) - DELAY for stream in streams)
    later = {
        stream: given + [(key, value, max(at, watermark)) for key, value, at in more]
        for (stream, given), more in zip(now.items(), (more_s, more_u, more_v), strict=True)
    }
    closed = Counter(run(database, plan, now, closed_only=True))
    in_the_end = Counter(run(database, plan, later))
    assert closed <= in_the_end, closed - in_the_end


def ticks_over(join: Node) -> Node:
    return Aggregate(Window(join, TickWindow(SECOND // 2, SECOND // 2)), (), (COUNT,))


LATE_PLANS: dict[str, Node] = {
    **TICK_PLANS,
    "left": ticks_over(UNMATCHED),
    "full": ticks_over(PLANS["full"]),
    "outer of outer": ticks_over(PLANS["outer of outer"]),
    "inner of outer": ticks_over(Join((UNMATCHED, Window(V, RangeWindow(2 * SECOND))), TRUE)),
    "chain": ticks_over(
        OuterJoin(OuterKind.LEFT, UNMATCHED, Window(V, RangeWindow(SECOND)), equal(KEY, Column(6, INT)))
    ),
}


@examples(6)
@given(st.sampled_from(sorted(LATE_PLANS)), near_rows, near_rows, near_rows, near_times)
def test_a_late_start_gives_the_same_ticks(
    database: Database, name: str, s: Rows, u: Rows, v: Rows, start_us: int
) -> None:
    plan = with_tick(LATE_PLANS[name])
    data = {"s": s, "u": u, "v": v}
    everything = Counter(run(database, plan, data))
    later = Counter(run(database, plan, data, start_us=start_us))
    assert later <= everything, later - everything


@examples(3)
@given(near_rows, near_rows, near_rows, spans, spans, spans, near_times, st.booleans())
def test_late_starts_and_closing_do_not_depend_on_how_joins_are_nested(
    database: Database,
    s: Rows,
    u: Rows,
    v: Rows,
    range_s: int,
    range_u: int,
    range_v: int,
    start_us: int,
    closed_only: bool,
) -> None:
    s_, u_, v_ = (
        Window(scan, RangeWindow(span)) for scan, span in ((S, range_s), (U, range_u), (V, range_v))
    )

    def counted(join: Node) -> Node:
        ticking = Aggregate(Window(join, TickWindow(SECOND, SECOND // 2)), (), (COUNT,))
        return Project(ticking, (END, Column(0, BIGINT)))

    def counts(join: Node) -> list[tuple[object, ...]]:
        data = {"s": s, "u": u, "v": v}
        return run(database, counted(join), data, start_us=start_us, closed_only=closed_only)

    flat = counts(Join((s_, u_, v_), TRUE))
    assert_same(flat, counts(Join((Join((s_, u_), TRUE), v_), TRUE)))
    assert_same(flat, counts(Join((s_, Join((u_, v_), TRUE)), TRUE)))


@examples()
@given(rows, rows, spans, spans, event_times)
def test_a_late_start_sees_rows_after_it(
    database: Database, s: Rows, u: Rows, range_s: int, range_u: int, start_us: int
) -> None:
    plan = OuterJoin(
        OuterKind.FULL,
        Window(S, RangeWindow(range_s)),
        Window(U, RangeWindow(range_u)),
        equal(KEY, Column(3, INT)),
    )
    after = {"s": [row for row in s if row[2] > start_us], "u": [row for row in u if row[2] > start_us]}
    assert_same(run(database, plan, after), run(database, plan, {"s": s, "u": u}, start_us=start_us))
