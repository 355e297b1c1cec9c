"""A chart is well-formed whatever it shows, its points are where they belong, and nothing covers them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.picture.chart import INSET, MARKED_POINTS, WIDTH, Chart, Series, chart_svg
from plait.picture.layout import Rectangle
from plait.picture.text import text_width

SVG = "{http://www.w3.org/2000/svg}"
Point = tuple[float, float]

CHART = Chart(
    "Window aggregates",
    "queries",
    "seconds",
    (Series("Plait", ((1, 5.0), (10, 50.0), (100, 500.0))), Series("plain Spark", ((10, 142.0),))),
    log_x=True,
    log_y=True,
)


def texts(svg: str, style: str = "") -> list[ElementTree.Element]:
    found = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return [element for element in found if style in ("", element.get("class"))]


def lines(svg: str) -> list[list[Point]]:
    """The places of each series."""
    found = []
    for element in ElementTree.fromstring(svg).iter(f"{SVG}polyline"):
        places = (place.split(",") for place in element.attrib["points"].split())
        found.append([(float(x), float(y)) for x, y in places])
    return found


def marks(svg: str) -> list[Point]:
    """The places of all marks, those of the legend too."""
    found = (element.get("transform", "") for element in ElementTree.fromstring(svg).iter(f"{SVG}path"))
    matches = (re.fullmatch(r"translate\((\S+) (\S+)\)", each) for each in found)
    return [(float(match[1]), float(match[2])) for match in matches if match is not None]


def plot(svg: str) -> Rectangle:
    """What the axes enclose."""
    root = ElementTree.fromstring(svg)
    (axis,) = (path for path in root.iter(f"{SVG}path") if path.get("class") == "axis")
    left, top, bottom, right = map(float, re.findall(r"[0-9.]+", axis.attrib["d"]))
    return Rectangle(left, top, right - left, bottom - top)


def ticks(svg: str) -> tuple[list[float], list[float]]:
    """Where they stand: on the x axis, on the y axis."""
    x_ticks = [float(each.attrib["x"]) for each in texts(svg, "line middle")[:-1]]  # the last is the label
    return x_ticks, [float(each.attrib["y"]) for each in texts(svg, "line end")]


def chart_of(*points: Point, log: bool = False) -> Chart:
    return Chart("t", "x", "y", (Series("s", points),), log_x=log, log_y=log)


def assert_sound(svg: str) -> None:
    area = plot(svg)
    for x, y in (place for line in lines(svg) for place in line):
        assert area.left <= x <= area.right
        assert area.top <= y <= area.bottom
    x_ticks, y_ticks = ticks(svg)
    assert len(x_ticks) >= 2
    assert len(y_ticks) >= 2
    assert all(a < b for a, b in pairwise(x_ticks))
    assert all(a > b for a, b in pairwise(y_ticks)), "upwards"
    for style in ("line middle", "line end"):
        shown = [each.text for each in texts(svg, style)]
        assert len(set(shown)) == len(shown), "no two ticks have one text"


def test_everything_is_named() -> None:
    shown = [element.text for element in texts(chart_svg(CHART))]
    for text in ("Window aggregates", "queries", "seconds", "Plait", "plain Spark"):
        assert text in shown
    upwards = [element.text for element in texts(chart_svg(CHART), "line end")]
    assert upwards == ["5", "10", "20", "50", "100", "200", "500"]
    titles = [element.text for element in ElementTree.fromstring(chart_svg(CHART)).iter(f"{SVG}title")]
    assert "plain Spark: 10, 142" in titles


def test_equal_ratios_are_equally_far_apart_on_logarithmic_axes() -> None:
    svg = chart_svg(CHART)
    assert_sound(svg)
    area, (first, second, third) = plot(svg), lines(svg)[0]
    assert first == pytest.approx((area.left + INSET, area.bottom), abs=0.1)
    assert third == pytest.approx((area.right - INSET, area.top), abs=0.1)
    assert second == pytest.approx(((first[0] + third[0]) / 2, (first[1] + third[1]) / 2), abs=0.1)


def test_equal_differences_are_equally_far_apart_on_linear_axes() -> None:
    svg = chart_svg(chart_of((0, 0), (5, 30), (10, 60)))
    assert_sound(svg)
    (first, second, third) = lines(svg)[0]
    assert second == pytest.approx(((first[0] + third[0]) / 2, (first[1] + third[1]) / 2), abs=0.1)
    assert [each.text for each in texts(svg, "line end")] == ["0", "10", "20", "30", "40", "50", "60"]


def test_a_line_goes_from_left_to_right() -> None:
    assert lines(chart_svg(chart_of((3, 1), (1, 2), (2, 9)))) == lines(
        chart_svg(chart_of((1, 2), (2, 9), (3, 1)))
    )


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "points",
    [
        [(3, 7)],
        [(1, 5), (2, 5), (3, 5)],
        [(1, 1)],
        [(1, 100_000.0), (2, 100_000.5)],
        [(1, 1e-100), (2, 1e100)],
        [(x, math.sin(x) + 2) for x in range(1, 10_000)],
    ],
    ids=["one", "equal", "ones", "close", "extreme", "many"],
)
def test_unusual_series(points: Sequence[Point], log: bool) -> None:
    assert_sound(chart_svg(chart_of(*points, log=log)))


def test_zero_is_a_value_on_linear_axes() -> None:
    svg = chart_svg(chart_of((0, 0)))
    assert_sound(svg)
    assert texts(svg, "line end")[0].text == "0", "not below"
    assert_sound(chart_svg(chart_of((0, -3), (4, 0))))


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_logarithmic_axes_have_no_place_for_zero(value: float) -> None:
    with pytest.raises(ValueError, match="logarithmic"):
        chart_of((1, 1), (value, 1), log=True)
    with pytest.raises(ValueError, match="logarithmic"):
        chart_of((1, 1), (1, value), log=True)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e101])
def test_what_has_no_place_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="too far"):
        chart_of((1, value))


def test_a_chart_shows_something() -> None:
    with pytest.raises(ValueError, match="points"):
        chart_of()
    with pytest.raises(ValueError, match="series"):
        Chart("t", "x", "y", ())


def test_few_points_are_marked_and_many_are_not() -> None:
    few = chart_of(*((x, x) for x in range(MARKED_POINTS)))
    assert len(marks(chart_svg(few))) == MARKED_POINTS + 1  # and one in the legend
    assert not marks(chart_svg(chart_of(*((x, x) for x in range(MARKED_POINTS + 1)))))


@pytest.mark.parametrize("count", [1, 3, 40])
def test_the_legend_is_below_the_lines_and_inside_the_picture(count: int) -> None:
    names = [f"series {number} {'x' * number * 4}" for number in range(count)]
    svg = chart_svg(Chart("t", "x", "y", tuple(Series(name, ((1, 2), (3, 4))) for name in names)))
    height = float(ElementTree.fromstring(svg).attrib["height"])
    legend = texts(svg, "line")[1:]  # the first is the label of the y axis
    assert len(legend) == count
    below = plot(svg).bottom
    for element in legend:
        assert below + 40 < float(element.attrib["y"]) < height
        assert float(element.attrib["x"]) + text_width(element.text or "", 10.5) <= WIDTH


@given(st.text(max_size=60))
def test_any_text_gives_well_formed_xml(text: str) -> None:
    named = tuple(replace(series, name=text) for series in CHART.series)
    svg = chart_svg(replace(CHART, title=text, x_label=text, y_label=text, series=named))
    assert len(texts(svg)) == len(texts(chart_svg(CHART)))


def test_signs_of_xml_are_escaped() -> None:
    svg = chart_svg(replace(CHART, title="<b> & </b>", series=(Series("a<b&c", ((1, 1),)),)))
    shown = [element.text for element in texts(svg)]
    assert "<b> & </b>" in shown
    assert "a<b&c" in shown


def series_of(values: st.SearchStrategy[float]) -> st.SearchStrategy[list[list[Point]]]:
    return st.lists(st.lists(st.tuples(values, values), min_size=1, max_size=30), min_size=1, max_size=8)


@given(series_of(st.floats(-1e100, 1e100) | st.integers(-1000, 1000).map(float)))
def test_no_point_is_outside_linear_axes(series: list[list[Point]]) -> None:
    drawn = tuple(Series("s", tuple(points)) for points in series)
    svg = chart_svg(Chart("t", "x", "y", drawn))
    assert "nan" not in svg
    assert_sound(svg)


@given(series_of(st.floats(1e-100, 1e100) | st.floats(0.5, 2000)))
def test_no_point_is_outside_logarithmic_axes(series: list[list[Point]]) -> None:
    drawn = tuple(Series("s", tuple(points)) for points in series)
    svg = chart_svg(Chart("t", "x", "y", drawn, log_x=True, log_y=True))
    assert "nan" not in svg
    assert_sound(svg)


def test_the_picture_is_the_same_every_time() -> None:
    assert chart_svg(CHART) == chart_svg(CHART)
