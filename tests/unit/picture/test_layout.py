"""Whatever the graph: boxes keep apart, stay in their bands, and arrows lead from left to right."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from plait.picture.layout import Item, Placement, Rectangle, lay_out


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Item], list[tuple[str, str]]]:
    count = draw(st.integers(1, 14))
    bands = draw(st.integers(1, min(3, count)))
    items = [
        Item(
            f"n{index}",
            draw(st.integers(20, 200)),
            draw(st.integers(20, 80)),
            index if index < bands else draw(st.integers(0, bands - 1)),
        )
        for index in range(count)
    ]
    pairs = list(combinations(range(count), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=24)) if pairs else []
    return items, [(f"n{a}", f"n{b}") for a, b in chosen]


def apart(a: Rectangle, b: Rectangle) -> bool:
    slack = 1e-6
    return (
        a.right <= b.left + slack
        or b.right <= a.left + slack
        or a.bottom <= b.top + slack
        or b.bottom <= a.top + slack
    )


@given(graphs())
def test_boxes_keep_apart_and_in_their_bands(graph: tuple[list[Item], list[tuple[str, str]]]) -> None:
    items, arrows = graph
    placement = lay_out(items, arrows, framed=True)
    assert set(placement.boxes) == {item.id for item in items}
    assert all(apart(a, b) for a, b in combinations(placement.boxes.values(), 2))
    assert all(apart(a, b) for a, b in combinations(placement.bands, 2))
    for item in items:
        box, band = placement.boxes[item.id], placement.bands[item.band]
        assert band.left <= box.left
        assert box.right <= band.right
        assert band.top <= box.top
        assert box.bottom <= band.bottom
    assert all(band.right <= placement.width + 1e-6 for band in placement.bands)
    assert all(band.bottom <= placement.height + 1e-6 for band in placement.bands)


@given(graphs())
def test_arrows_lead_to_the_right_and_around_boxes(graph: tuple[list[Item], list[tuple[str, str]]]) -> None:
    items, arrows = graph
    placement = lay_out(items, arrows, framed=False)
    for source, target in arrows:
        points = placement.routes[source, target]
        assert points[0] == (placement.boxes[source].right, placement.boxes[source].middle)
        assert points[-1] == (placement.boxes[target].left, placement.boxes[target].middle)
        assert all(a[0] <= b[0] for a, b in pairwise(points))
        # A straight stretch passes a column: no box may be there.
        for (x1, y1), (x2, y2) in pairwise(points):
            if y1 == y2 and len(points) > 2:
                assert not hits(placement, x1, x2, y1, {source, target})


def hits(placement: Placement, x1: float, x2: float, y: float, besides: set[str]) -> bool:
    return any(
        box.left < x2 and x1 < box.right and box.top < y < box.bottom
        for id_, box in placement.boxes.items()
        if id_ not in besides
    )


def test_nothing_takes_no_place() -> None:
    assert lay_out([], [], framed=True) == Placement({}, {}, (), 0.0, 0.0)


def test_a_source_stands_right_before_its_reader() -> None:
    items = [Item(name, 50, 30, 0) for name in "abcd"]
    placement = lay_out(items, [("a", "b"), ("b", "c"), ("d", "c")], framed=False)
    assert placement.boxes["d"].left == placement.boxes["b"].left


def test_arrows_bend_between_columns_only() -> None:
    items = [
        Item("narrow", 20, 20, 0),
        Item("wide", 200, 20, 0),
        Item("end", 50, 20, 0),
        Item("far", 50, 20, 0),
    ]
    arrows = [("narrow", "end"), ("wide", "end"), ("end", "far"), ("narrow", "far"), ("wide", "far")]
    placement = lay_out(items, arrows, framed=False)
    bends = [
        (left, right)
        for points in placement.routes.values()
        for (left, start), (right, end) in pairwise(points)
        if start != end
    ]
    assert len(bends) == 6
    for left, right in bends:
        assert not any(left < box.right and box.left < right for box in placement.boxes.values())
