"""The SVG is well-formed whatever the names, shows what it should, and no text leaves its box."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from plait.picture.diagram import Box, BoxKind, Diagram, Refusal, SiteFrame
from plait.picture.dot import to_dot
from plait.picture.svg import to_svg
from plait.picture.text import text_width

SVG = "{http://www.w3.org/2000/svg}"

BOTH = frozenset({"gate_17", "gate_42"})
DIAGRAM = Diagram(
    "2 queries on 2 sites",
    "1 operator is shared",
    (
        Box("s", BoxKind.STREAM, "flights", ("5 rows/s",), site="atlanta"),
        Box("t", BoxKind.TABLE, "airports", ("300 rows",), site="newyork"),
        Box("flow", BoxKind.FLOW, "flights → newyork", ("1.2 kB/s",), site="newyork"),
        Box("j", BoxKind.OPERATOR, "join", ("dest = code",), site="newyork", queries=BOTH, shared=True),
        Box("q1", BoxKind.QUERY, "gate_17", site="newyork"),
        Box("q2", BoxKind.QUERY, "gate_42", site="newyork"),
    ),
    (("s", "flow"), ("flow", "j"), ("t", "j"), ("j", "q1"), ("j", "q2")),
    (SiteFrame("atlanta", "atlanta · 4 cores"), SiteFrame("newyork", "newyork · 8 cores")),
    (Refusal("all", "no site has 12 cores"),),
)


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_everything_is_shown() -> None:
    shown = texts(to_svg(DIAGRAM))
    for box in DIAGRAM.boxes:
        assert box.title in shown
        assert all(line in shown for line in box.lines)
    assert "×2" in shown  # how many queries share the join
    assert "atlanta · 4 cores" in shown
    assert "Refused: 1" in shown
    assert "all: no site has 12 cores" in shown


def test_texts_stay_inside_their_boxes() -> None:
    long = replace(DIAGRAM.boxes[3], title="join " + "x" * 90, lines=("MW@" * 60, "short"))
    svg = to_svg(replace(DIAGRAM, boxes=(*DIAGRAM.boxes[:3], long, *DIAGRAM.boxes[4:])))
    checked = 0
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        rectangles = group.findall(f"{SVG}rect")
        if group.find(f"{SVG}title") is None:
            continue  # a section, not a box
        right = float(rectangles[0].attrib["x"]) + float(rectangles[0].attrib["width"])
        for text in group.findall(f"{SVG}text"):
            bold = text.attrib["class"] == "title"
            if text.attrib["class"] != "badge":
                width = text_width(text.text or "", 12 if bold else 10.5, bold=bold)
                assert float(text.attrib["x"]) + width <= right
                checked += 1
    assert checked > len(DIAGRAM.boxes)


def test_captions_stand_on_a_ground_of_their_own() -> None:
    elements = list(ElementTree.fromstring(to_svg(DIAGRAM)).iter())
    grounds = [
        index for index, e in enumerate(elements) if e.tag == f"{SVG}rect" and e.get("class") == "caption"
    ]
    assert len(grounds) == len(DIAGRAM.sites)
    arrows = [index for index, e in enumerate(elements) if "arrow" in e.get("class", "")]
    assert max(arrows) < min(grounds), "arrows pass behind"
    for index, site in zip(grounds, DIAGRAM.sites, strict=True):
        ground, text = elements[index], elements[index + 1]
        assert text.text == site.caption
        width = text_width(site.caption, 10.5)
        assert float(ground.attrib["x"]) < float(text.attrib["x"])
        assert float(text.attrib["x"]) + width < float(ground.attrib["x"]) + float(ground.attrib["width"])


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_name_gives_well_formed_xml(name: str, reason: str) -> None:
    box = Box("q1", BoxKind.QUERY, name, (reason,), tooltip=reason, site="newyork")
    diagram = replace(
        DIAGRAM,
        title=name,
        boxes=(*DIAGRAM.boxes[:4], box, DIAGRAM.boxes[5]),
        sites=(SiteFrame("atlanta", name), SiteFrame("newyork", reason)),
        refusals=(Refusal(name, reason),),
    )
    ElementTree.fromstring(to_svg(diagram))
    assert to_dot(diagram).count("\n") == to_dot(DIAGRAM).count("\n")  # no name breaks out of its line


def test_the_picture_is_the_same_every_time() -> None:
    assert to_svg(DIAGRAM) == to_svg(DIAGRAM)


def test_an_empty_diagram_is_a_picture_too() -> None:
    assert texts(to_svg(Diagram("nothing", "", (), ()))) == ["nothing"]


def test_dot_has_sites_as_clusters_and_every_arrow() -> None:
    dot = to_dot(DIAGRAM)
    assert dot.startswith("digraph plait {\n")
    assert 'subgraph cluster_0 {\n    label="atlanta · 4 cores";' in dot
    assert '"j" [label="join\\ndest = code\\nfor 2 queries"' in dot
    assert [line for line in dot.splitlines() if "->" in line] == [
        f'  "{source}" -> "{target}";' for source, target in DIAGRAM.arrows
    ]
    assert "// refused: all: no site has 12 cores" in dot
