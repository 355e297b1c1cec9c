"""A diagram as SVG: one file without scripts, fonts or links, readable in light and in dark.

Boxes are measured before they are placed, so no text leaves its box. What does not fit is shortened and
stands in full in the tooltip.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from plait.picture.diagram import Box, BoxKind, Diagram
from plait.picture.elements import escaped, svg_document, text_element
from plait.picture.fold import folded
from plait.picture.layout import Item, Rectangle, lay_out
from plait.picture.text import shortened, text_width, wrapped

TITLE_SIZE = 12.0
LINE_SIZE = 10.5
HEADING_SIZE = 16.0
LINE_STEP = 14.0
PADDING = 10.0
WIDEST_TEXT = 230.0
WIDEST_CAPTION = 500.0
NARROWEST_BOX = 64.0
MARGIN = 24.0
SECTION_GAP = 22.0
HEAD_LENGTH = 7.0
REFUSALS_SHOWN = 20
LEAST_WIDTH = 560.0

_STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
.heading { font-size: 16px; font-weight: 600; }
.title { font-size: 12px; font-weight: 600; }
.line { font-size: 10.5px; fill: #59636e; }
.caption { fill: #f6f8fa; }
.badge { font-size: 10.5px; font-weight: 600; fill: #ffffff; }
.canvas { fill: #ffffff; }
.frame { fill: #f6f8fa; stroke: #d1d9e0; }
.stream { fill: #ddf4ff; stroke: #54aeff; }
.table { fill: #fff8c5; stroke: #d4a72c; }
.operator { fill: #ffffff; stroke: #8c959f; }
.shared { fill: #dafbe1; stroke: #1a7f37; stroke-width: 1.6; }
.flow { fill: #fff1e5; stroke: #fb8f44; }
.query { fill: #fbefff; stroke: #a475f9; }
.count { fill: #1a7f37; }
.arrow { fill: none; stroke: #8c959f; stroke-width: 1.2; }
.arrow.of-shared { stroke: #1a7f37; stroke-width: 1.6; }
.arrow.of-flow { stroke: #fb8f44; stroke-width: 1.6; }
.head { fill: #8c959f; }
.head.of-shared { fill: #1a7f37; }
.head.of-flow { fill: #fb8f44; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .line { fill: #9198a1; }
  .caption { fill: #151b23; }
  .canvas { fill: #0d1117; }
  .frame { fill: #151b23; stroke: #3d444d; }
  .stream { fill: #0c2d6b; stroke: #388bfd; }
  .table { fill: #341a00; stroke: #9e6a03; }
  .operator { fill: #212830; stroke: #656c76; }
  .shared { fill: #033a16; stroke: #2ea043; }
  .flow { fill: #3d1300; stroke: #bd561d; }
  .query { fill: #271052; stroke: #8957e5; }
  .count { fill: #238636; }
  .arrow { stroke: #656c76; }
  .arrow.of-shared { stroke: #2ea043; }
  .arrow.of-flow { stroke: #bd561d; }
  .head { fill: #656c76; }
  .head.of-shared { fill: #2ea043; }
  .head.of-flow { fill: #bd561d; }
}
"""

# Of pictures that show a change.
_MARKS = """
.starts { stroke: #1a7f37; stroke-width: 2.4; }
.stops { stroke: #cf222e; stroke-width: 2; stroke-dasharray: 5 3; }
"""

_LEGEND = (
    ("stream", "stream"),
    ("table", "table"),
    ("operator", "operator"),
    ("shared", "shared: computed once, for ×n queries"),
    ("flow", "flow between sites"),
    ("query", "query"),
    ("operator starts", "would start"),
    ("operator stops", "would stop"),
)


@dataclass(frozen=True)
class _Measured:
    """A box with the texts that fit and the size they need."""

    box: Box
    title: str
    lines: tuple[str, ...]
    badge: str
    width: float
    height: float

    @property
    def style(self) -> str:
        return "shared" if self.box.shared else self.box.kind.value


@dataclass(frozen=True)
class _Section:
    """A part of the picture, drawn from (0, 0) on; sections stand below each other."""

    elements: list[str]
    width: float
    height: float


def to_svg(diagram: Diagram) -> str:
    """The picture, folded if it would be too large to read."""
    diagram = folded(diagram)
    measured = {box.id: _measured(box) for box in diagram.boxes}
    drawing = _drawing(diagram, measured)
    width = max(drawing.width, LEAST_WIDTH)
    styles = {m.style for m in measured.values()}
    marks = {f"operator {box.mark}" for box in diagram.boxes if box.mark}
    styles |= marks
    sections = [_header(diagram, width), drawing, _legend(styles, width), _refusals(diagram, width)]
    body: list[str] = []
    top = MARGIN
    for section in sections:
        if section.elements:
            body += [f'<g transform="translate({MARGIN:g} {top:.1f})">', *section.elements, "</g>"]
            top += section.height + SECTION_GAP
    full_width, full_height = width + 2 * MARGIN, top - SECTION_GAP + MARGIN
    return svg_document(diagram.title, _STYLE + _MARKS if marks else _STYLE, full_width, full_height, body)


def _measured(box: Box) -> _Measured:
    title = shortened(box.title, WIDEST_TEXT, TITLE_SIZE, bold=True)
    lines = tuple(shortened(line, WIDEST_TEXT, LINE_SIZE) for line in box.lines)
    # Sources too show how many queries they serve; what queries and flows serve shows by itself.
    counts = box.kind not in (BoxKind.QUERY, BoxKind.FLOW) and not box.members
    badge = f"×{len(box.queries):,}" if counts and len(box.queries) > 1 else ""
    texts = [text_width(title, TITLE_SIZE, bold=True), *(text_width(line, LINE_SIZE) for line in lines)]
    width = max(max(texts) + 2 * PADDING, NARROWEST_BOX)
    height = (len(lines) + 1) * LINE_STEP + 2 * PADDING - 4
    return _Measured(box, title, lines, badge, width, height)


def _header(diagram: Diagram, width: float) -> _Section:
    elements = [
        text_element(0, HEADING_SIZE, shortened(diagram.title, width, HEADING_SIZE, bold=True), "heading")
    ]
    y = HEADING_SIZE + 6
    for line in wrapped(diagram.caption, width, LINE_SIZE):
        y += LINE_STEP
        elements.append(text_element(0, y, line, "line"))
    return _Section(elements, width, y)


def _drawing(diagram: Diagram, measured: Mapping[str, _Measured]) -> _Section:
    inhabited = {box.site for box in diagram.boxes}
    frames = [site for site in diagram.sites if site.name in inhabited]
    band_of = {site.name: band for band, site in enumerate(frames)}
    items = [
        Item(m.box.id, m.width, m.height, band_of.get(m.box.site, len(frames))) for m in measured.values()
    ]
    placement = lay_out(items, diagram.arrows, framed=bool(frames))
    elements: list[str] = []
    captions: list[str] = []  # above the arrows, which may pass behind a caption
    width = placement.width
    for site, band in zip(frames, placement.bands, strict=False):  # boxes without a site have no frame
        caption = shortened(site.caption, WIDEST_CAPTION, LINE_SIZE)
        # Beside a band there is nothing but other columns: a long caption may widen its frame.
        needed = text_width(caption, LINE_SIZE) + 2 * PADDING
        frame = replace(band, width=max(band.width, needed))
        width = max(width, frame.right)
        elements.append(_rectangle(frame, "frame", 8))
        behind = Rectangle(frame.left + PADDING / 2, frame.top + 4, needed - PADDING, 18)
        captions.append(_rectangle(behind, "caption", 0))
        captions.append(text_element(frame.left + PADDING, frame.top + 17, caption, "line"))
    for (source, _), points in placement.routes.items():
        elements += _arrow(points, measured[source].style)
    elements += captions
    for id_, rectangle in placement.boxes.items():
        elements += _box(measured[id_], rectangle)
    return _Section(elements, width, placement.height)


def _arrow(points: Sequence[tuple[float, float]], style: str) -> Iterator[str]:
    (x, y), *rest = points
    path = [f"M{x:.1f} {y:.1f}"]
    end_x, end_y = rest[-1]
    for next_x, next_y in [*rest[:-1], (end_x - HEAD_LENGTH, end_y)]:
        if abs(next_y - y) < 0.05:
            path.append(f"H{next_x:.1f}")
        else:
            half = (x + next_x) / 2
            path.append(f"C{half:.1f} {y:.1f} {half:.1f} {next_y:.1f} {next_x:.1f} {next_y:.1f}")
        x, y = next_x, next_y
    yield f'<path class="arrow of-{style}" d="{"".join(path)}"/>'
    yield (
        f'<path class="head of-{style}" d="M{end_x:.1f} {end_y:.1f}'
        f'l{-HEAD_LENGTH:g} {-HEAD_LENGTH / 2:g}v{HEAD_LENGTH:g}z"/>'
    )


def _box(measured: _Measured, at: Rectangle) -> Iterator[str]:
    radius = at.height / 2 if measured.box.kind is BoxKind.FLOW else 5
    yield "<g>"
    yield f"<title>{escaped(measured.box.tooltip or measured.box.title)}</title>"
    if measured.box.members:  # a pile
        yield _rectangle(Rectangle(at.left + 4, at.top + 4, at.width, at.height), measured.style, radius)
    yield _rectangle(at, f"{measured.style} {measured.box.mark}".rstrip(), radius)
    y = at.top + PADDING + 9
    yield text_element(at.left + PADDING, y, measured.title, "title")
    for line in measured.lines:
        y += LINE_STEP
        yield text_element(at.left + PADDING, y, line, "line")
    if measured.badge:
        width = text_width(measured.badge, LINE_SIZE, bold=True) + PADDING
        badge = Rectangle(at.right - width + 6, at.top - 8, width, 16)
        yield _rectangle(badge, "count", 8)
        yield text_element(badge.left + PADDING / 2, badge.top + 12, measured.badge, "badge")
    yield "</g>"


def _legend(styles: set[str], width: float) -> _Section:
    elements: list[str] = []
    x, y = 0.0, 0.0
    for style, meaning in _LEGEND:
        if style not in styles:
            continue
        needed = 22 + text_width(meaning, LINE_SIZE) + 18
        if x and x + needed > width:
            x, y = 0.0, y + LINE_STEP + 4
        elements.append(_rectangle(Rectangle(x, y, 16, 11), style, 3))
        elements.append(text_element(x + 22, y + 9.5, meaning, "line"))
        x += needed
    return _Section(elements, width, y + 11)


def _refusals(diagram: Diagram, width: float) -> _Section:
    if not diagram.refusals:
        return _Section([], width, 0)
    y = TITLE_SIZE
    elements = [text_element(0, y, f"Refused: {len(diagram.refusals):,}", "title")]
    lines = [f"{refusal.query}: {refusal.reason}" for refusal in diagram.refusals[:REFUSALS_SHOWN]]
    if len(diagram.refusals) > REFUSALS_SHOWN:
        lines.append(f"and {len(diagram.refusals) - REFUSALS_SHOWN:,} more")
    for part in (part for line in lines for part in wrapped(line, width, LINE_SIZE)):
        y += LINE_STEP
        elements.append(text_element(0, y, part, "line"))
    return _Section(elements, width, y)


def _rectangle(at: Rectangle, style: str, radius: float) -> str:
    return (
        f'<rect class="{style}" x="{at.left:.1f}" y="{at.top:.1f}" '
        f'width="{at.width:.1f}" height="{at.height:.1f}" rx="{radius:g}"/>'
    )
