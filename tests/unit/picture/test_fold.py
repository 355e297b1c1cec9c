"""What is folded when a picture gets large, and that nothing gets lost."""

from __future__ import annotations

from plait.picture.diagram import Box, BoxKind, Diagram
from plait.picture.fold import LEGIBLE_BOXES, folded


def diagram_of(queries: int, joins: int = 1) -> Diagram:
    """Queries that each filter for themselves the result of one of some shared joins."""
    names = [f"query_{number}" for number in range(queries)]
    boxes = [Box("s", BoxKind.STREAM, "flights")]
    arrows: list[tuple[str, str]] = []
    for join in range(joins):
        users = frozenset(names[join::joins])
        boxes.append(Box(f"j{join}", BoxKind.OPERATOR, "join", queries=users, shared=True))
        arrows.append(("s", f"j{join}"))
    for number, name in enumerate(names):
        own = frozenset({name})
        boxes.append(Box(f"f{number}", BoxKind.OPERATOR, "filter", (f"num = {number}",), queries=own))
        boxes.append(Box(f"q{number}", BoxKind.QUERY, name, queries=own))
        arrows += [(f"j{number % joins}", f"f{number}"), (f"f{number}", f"q{number}")]
    return Diagram("queries", "", tuple(boxes), tuple(arrows))


def test_a_small_diagram_stays_as_it_is() -> None:
    diagram = diagram_of(5)
    assert folded(diagram) == diagram


def test_private_operators_and_queries_over_the_same_operator_become_one_box() -> None:
    small = folded(diagram_of(100))
    assert [box.title for box in small.boxes] == ["flights", "join", "100 queries"]
    group = small.boxes[-1]
    assert group.lines == ("query_0, query_1 and 98 more",)
    assert group.tooltip.splitlines() == [f"query_{number}" for number in range(100)]
    assert small.arrows == (("s", "j0"), ("j0", "q0"))


def test_queries_stay_with_the_operator_they_use() -> None:
    small = folded(diagram_of(90, joins=10))
    groups = [box for box in small.boxes if box.kind is BoxKind.QUERY]
    assert [box.title for box in groups] == ["9 queries"] * 10


def test_a_single_query_keeps_its_name_and_tells_its_operators() -> None:
    diagram = diagram_of(100, joins=23)
    alone = Box("alone", BoxKind.QUERY, "alone", queries=frozenset({"alone"}))
    own = Box("own", BoxKind.OPERATOR, "aggregate", ("count(*)",), queries=frozenset({"alone"}))
    small = folded(
        Diagram("", "", (*diagram.boxes, own, alone), (*diagram.arrows, ("s", "own"), ("own", "alone")))
    )
    kept = next(box for box in small.boxes if box.id == "alone")
    assert (kept.title, kept.lines) == ("alone", ("aggregate",))
    assert kept.tooltip == "alone\naggregate: count(*)"


def test_no_picture_grows_without_bounds() -> None:
    names = [f"query_{number}" for number in range(200)]
    sources = [Box(f"s{number}", BoxKind.STREAM, f"stream_{number}") for number in range(20)]
    boxes, arrows = list(sources), []
    for number, name in enumerate(names):  # every join has another pair of inputs and two readers
        users = frozenset({name, f"other_{name}"})
        boxes.append(Box(f"j{number}", BoxKind.OPERATOR, "join", queries=users, shared=True))
        boxes += [Box(f"q{user}", BoxKind.QUERY, user, queries=frozenset({user})) for user in sorted(users)]
        arrows += [(f"s{number % 20}", f"j{number}"), (f"s{number // 20}", f"j{number}")]
        arrows += [(f"j{number}", f"q{user}") for user in sorted(users)]
    small = folded(Diagram("", "", tuple(boxes), tuple(dict.fromkeys(arrows))))
    assert [box.title for box in small.boxes[20:]] == ["200 joins", "400 queries"]


def test_an_operator_that_rearranges_columns_goes_into_what_it_reads_from() -> None:
    diagram = diagram_of(10)
    projects = [Box(f"p{n}", BoxKind.OPERATOR, "project", (f"a{n}",), minor=True) for n in range(50)]
    arrows = [("s", box.id) for box in projects]
    small = folded(Diagram("", "", (*diagram.boxes, *projects), (*diagram.arrows, *arrows)))
    assert len(small.boxes) == len(diagram.boxes)
    assert "project: a7" in small.boxes[0].tooltip


def test_alike_operators_become_one_box_when_there_are_too_many() -> None:
    small = folded(diagram_of(1000, joins=100))
    assert len(small.boxes) <= LEGIBLE_BOXES
    assert [box.title for box in small.boxes] == ["flights", "100 joins", "1,000 queries"]
    assert small.boxes[1].lines == ("for 1,000 queries",)
    assert small.boxes[1].shared
    assert len(small.boxes[2].members) == 1000
