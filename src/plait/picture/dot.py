"""A diagram in the DOT language of Graphviz, for those who lay out or restyle pictures themselves.

Nothing is folded: the file has every box.
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.picture.diagram import Box, BoxKind, Diagram

_SHAPES = {
    BoxKind.STREAM: 'shape=box, style="rounded,filled", fillcolor="#ddf4ff", color="#54aeff"',
    BoxKind.TABLE: 'shape=cylinder, style=filled, fillcolor="#fff8c5", color="#d4a72c"',
    BoxKind.OPERATOR: 'shape=box, style=filled, fillcolor="#ffffff", color="#8c959f"',
    BoxKind.FLOW: 'shape=cds, style=filled, fillcolor="#fff1e5", color="#fb8f44"',
    BoxKind.QUERY: 'shape=box, style="rounded,filled", fillcolor="#fbefff", color="#a475f9"',
}
_SHARED = 'shape=box, style="filled,bold", fillcolor="#dafbe1", color="#1a7f37"'

# What comes later counts.
_MARKS = {
    "starts": ', penwidth=3, color="#1a7f37"',
    "stops": ', style="filled,dashed", penwidth=2, color="#cf222e"',
}


def to_dot(diagram: Diagram) -> str:
    """The diagram as one `digraph`, sites as clusters."""
    lines = [
        "digraph plait {",
        "  rankdir=LR;",
        '  node [fontname="Helvetica", fontsize=11, margin="0.12,0.06"];',
        f"  label={_quoted(diagram.title)}; labelloc=t;",
    ]
    for number, site in enumerate(diagram.sites):
        inside = [box for box in diagram.boxes if box.site == site.name]
        if inside:
            lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(site.caption)};"]
            lines += [f"    {line}" for box in inside for line in _node(box)]
            lines.append("  }")
    known = {site.name for site in diagram.sites}
    lines += [f"  {line}" for box in diagram.boxes if box.site not in known for line in _node(box)]
    lines += [f"  {_quoted(source)} -> {_quoted(target)};" for source, target in diagram.arrows]
    lines += [
        f"  // refused: {_one_line(refusal.query)}: {_one_line(refusal.reason)}"
        for refusal in diagram.refusals
    ]
    return "\n".join([*lines, "}", ""])


def _node(box: Box) -> Iterator[str]:
    used = (f"for {len(box.queries):,} queries",) if box.shared else ()
    label = "\n".join((box.title, *box.lines, *used))
    shape = (_SHARED if box.shared else _SHAPES[box.kind]) + _MARKS.get(box.mark, "")
    yield f"{_quoted(box.id)} [label={_quoted(label)}, tooltip={_quoted(box.tooltip or box.title)}, {shape}];"


def _quoted(text: str) -> str:
    """
    >>> print(_quoted('a "b"'))
    "a \\"b\\""
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in escaped) + '"'


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
