"""A line chart as SVG: one file without scripts, fonts or links, readable in light and in dark.

An axis begins and ends at a round number, so every point is between its ends. On a linear axis ticks are
1, 2 or 5 times a power of ten apart; on a logarithmic one they are such numbers themselves, or powers of ten
where there are many. The legend stands below the chart, where no line goes. Colours are those of Okabe and
Ito, which colour-blind people tell apart; shapes of the marks differ too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from plait.picture.elements import escaped, svg_document, text_element
from plait.picture.layout import Rectangle
from plait.picture.text import shortened, text_width
from plait.quantity_text import number_text

WIDTH = 640.0
PLOT_HEIGHT = 300.0
MARGIN = 24.0
HEADING_SIZE = 16.0
LINE_SIZE = 10.5
LINE_STEP = 14.0
INSET = 14.0  # left and right of all points, so that no mark is on the axis
KEY_WIDTH = 26.0  # of a line and its mark in the legend
TICKS = 6  # about so many
MOST_DECADES_BY_1_2_5 = 3
MARKED_POINTS = 24  # marks of more would be a thick line

# Beyond are no measurements, and arithmetic that is not exact.
SMALLEST, LARGEST = 1e-100, 1e100

_STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
.heading { font-size: 16px; font-weight: 600; }
.line { font-size: 10.5px; fill: #59636e; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.canvas { fill: #ffffff; }
.grid { stroke: #d1d9e0; stroke-width: 0.7; }
.axis { fill: none; stroke: #8c959f; stroke-width: 1.2; }
.series { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
.mark { fill: currentColor; stroke: #ffffff; }
.of-0 { color: #0072b2; }
.of-1 { color: #d55e00; }
.of-2 { color: #009e73; }
.of-3 { color: #cc79a7; }
.of-4 { color: #e69f00; }
.of-5 { color: #56b4e9; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .line { fill: #9198a1; }
  .canvas { fill: #0d1117; }
  .grid { stroke: #2a313c; }
  .axis { stroke: #656c76; }
  .mark { stroke: #0d1117; }
  .of-0 { color: #56b4e9; }
  .of-1 { color: #e69f00; }
  .of-4 { color: #f0e442; }
  .of-5 { color: #d55e00; }
}
"""
_COLOURS = 6
_MARKS = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",  # a circle
    "M-4 -4h8v8h-8z",
    "M0 -5.5l5.2 9h-10.4z",
    "M0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
)


@dataclass(frozen=True)
class Series:
    """A line through points (x, y), or a mark if there is only one."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Chart:
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False

    def __post_init__(self) -> None:
        if not self.series or not all(each.points for each in self.series):
            raise ValueError("a chart has series, and a series has points")
        for values, logarithmic in ((self.xs, self.log_x), (self.ys, self.log_y)):
            if not all(isfinite(value) and abs(value) <= LARGEST for value in values):
                raise ValueError("a point is too far away to be drawn")
            if logarithmic and min(values) < SMALLEST:
                raise ValueError("a logarithmic axis has no place for a value that is not above zero")

    @property
    def xs(self) -> list[float]:
        return [x for each in self.series for x, _ in each.points]

    @property
    def ys(self) -> list[float]:
        return [y for each in self.series for _, y in each.points]


@dataclass(frozen=True)
class _Axis:
    ticks: tuple[float, ...]
    texts: tuple[str, ...]
    logarithmic: bool

    @property
    def widest(self) -> float:
        return max(text_width(text, LINE_SIZE) for text in self.texts)

    def share(self, value: float) -> float:
        """How far along the axis a value is, from 0 to 1."""
        ends = self.ticks[0], self.ticks[-1]
        first, last, here = (log10(v) if self.logarithmic else v for v in (*ends, value))
        return (here - first) / (last - first)


@dataclass(frozen=True)
class _Plot:
    """Where the lines are."""

    area: Rectangle
    x: _Axis
    y: _Axis

    def left(self, x: float) -> float:
        return self.area.left + INSET + self.x.share(x) * (self.area.width - 2 * INSET)

    def top(self, y: float) -> float:
        return self.area.top + (1 - self.y.share(y)) * self.area.height


def chart_svg(chart: Chart) -> str:
    plot = _plot(chart)
    area, room = plot.area, WIDTH - 2 * MARGIN
    title = shortened(chart.title, room, HEADING_SIZE, bold=True)
    x_label = shortened(chart.x_label, area.width, LINE_SIZE)
    body = [
        text_element(MARGIN, MARGIN + HEADING_SIZE, title, "heading"),
        text_element(MARGIN, area.top - 14, shortened(chart.y_label, room, LINE_SIZE), "line"),
        *_axes(plot),
        text_element(area.left + area.width / 2, area.bottom + 36, x_label, "line middle"),
    ]
    for number, series in enumerate(chart.series):
        body += _line(series, number, plot)
    legend, bottom = _legend(chart.series, area.bottom + 60)
    return svg_document(chart.title, _STYLE, WIDTH, bottom + MARGIN, [*body, *legend])


def _plot(chart: Chart) -> _Plot:
    x, y = _axis(chart.xs, chart.log_x), _axis(chart.ys, chart.log_y)
    left, top = MARGIN + y.widest + 8, MARGIN + HEADING_SIZE + 42
    right = WIDTH - MARGIN - max(0, x.widest / 2 - INSET)
    return _Plot(Rectangle(left, top, right - left, PLOT_HEIGHT), x, y)


def _axis(values: Sequence[float], logarithmic: bool) -> _Axis:
    low, high = min(values), max(values)
    ticks = _logarithmic_ticks(low, high) if logarithmic else _linear_ticks(low, high)
    texts = [_tick_text(tick) for tick in ticks]
    if len(set(texts)) < len(texts):  # they differ in later digits
        texts = [f"{tick:,.12g}" for tick in ticks]
    return _Axis(tuple(ticks), tuple(texts), logarithmic)


def _linear_ticks(low: float, high: float) -> list[float]:
    """
    >>> _linear_ticks(0.13, 1.1), _linear_ticks(5, 5)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2], [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    """
    size = max(abs(low), abs(high))
    if high - low <= max(size * 1e-9, SMALLEST):  # as good as equal
        half = size / 2 if size > SMALLEST else 0.0
        low, high = low - half, high + (half or 1.0)
    power = floor(log10((high - low) / TICKS))
    for digit in (1, 2, 5, 10):
        step = float(f"{digit}e{power}")
        if step * TICKS >= high - low:
            break
    # From the text, as people write it: 3 * 0.1 is not 0.3.
    return [float(f"{n * digit}e{power}") for n in range(floor(low / step), ceil(high / step) + 1)]


def _logarithmic_ticks(low: float, high: float) -> list[float]:
    """
    >>> _logarithmic_ticks(3, 40), _logarithmic_ticks(1, 1e6)
    ([2.0, 5.0, 10.0, 20.0, 50.0], [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0])
    """
    decades = log10(high) - log10(low)
    digits = (1, 2, 5) if decades <= MOST_DECADES_BY_1_2_5 else (1,)
    every = max(1, ceil(decades / (TICKS + 2)))
    powers = range((floor(log10(low)) - 1) // every * every, ceil(log10(high)) + every + 1, every)
    ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
    first = max(index for index, tick in enumerate(ticks) if tick <= low)
    last = min(index for index, tick in enumerate(ticks) if tick >= high)
    if first == last:
        first, last = first - 1, last + 1
    return ticks[first : last + 1]


def _tick_text(tick: float) -> str:
    return number_text(tick) if tick == 0 or 1e-4 <= abs(tick) < 1e15 else f"{tick:.3g}"


def _axes(plot: _Plot) -> Iterator[str]:
    area = plot.area
    for tick, text in zip(plot.x.ticks, plot.x.texts, strict=True):
        x = plot.left(tick)
        yield f'<path class="grid" d="M{x:.1f} {area.top:.1f}V{area.bottom:.1f}"/>'
        yield text_element(x, area.bottom + 17, text, "line middle")
    for tick, text in zip(plot.y.ticks, plot.y.texts, strict=True):
        y = plot.top(tick)
        yield f'<path class="grid" d="M{area.left:.1f} {y:.1f}H{area.right:.1f}"/>'
        yield text_element(area.left - 8, y + 3.5, text, "line end")
    yield f'<path class="axis" d="M{area.left:.1f} {area.top:.1f}V{area.bottom:.1f}H{area.right:.1f}"/>'


def _line(series: Series, number: int, plot: _Plot) -> Iterator[str]:
    """Through the points from left to right; each mark says in its tooltip what it stands for."""
    points = sorted(series.points)
    places = " ".join(f"{plot.left(x):.1f},{plot.top(y):.1f}" for x, y in points)
    yield f'<polyline class="series of-{number % _COLOURS}" points="{places}"/>'
    if len(points) <= MARKED_POINTS:
        for x, y in points:
            tooltip = f"{series.name}: {_tick_text(x)}, {_tick_text(y)}"
            yield _mark(number, plot.left(x), plot.top(y), tooltip)


def _mark(number: int, x: float, y: float, tooltip: str) -> str:
    return (
        f'<path class="mark of-{number % _COLOURS}" transform="translate({x:.1f} {y:.1f})" '
        f'd="{_MARKS[number % len(_MARKS)]}"><title>{escaped(tooltip)}</title></path>'
    )


def _legend(series: Sequence[Series], top: float) -> tuple[list[str], float]:
    """Its elements, and where it ends."""
    elements: list[str] = []
    x, y, right = MARGIN, top, WIDTH - MARGIN
    for number, each in enumerate(series):
        name = shortened(each.name, right - MARGIN - KEY_WIDTH, LINE_SIZE)
        needed = KEY_WIDTH + text_width(name, LINE_SIZE)
        if x > MARGIN and x + needed > right:
            x, y = MARGIN, y + LINE_STEP + 4
        if len(each.points) > 1:
            elements.append(f'<path class="series of-{number % _COLOURS}" d="M{x:.1f} {y:.1f}h20"/>')
        if len(each.points) <= MARKED_POINTS:
            elements.append(_mark(number, x + 10, y, each.name))
        elements.append(text_element(x + KEY_WIDTH, y + 3.5, name, "line"))
        x += needed + 18
    return elements, y + LINE_STEP / 2
