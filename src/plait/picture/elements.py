"""What every SVG file of ours is made of: one document without scripts, fonts or links, and its texts."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape


def svg_document(title: str, style: str, width: float, height: float, body: Iterable[str]) -> str:
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
            f"<title>{escaped(title)}</title>",
            f"<style>{style}</style>",
            f'<rect class="canvas" width="{width:.0f}" height="{height:.0f}"/>',
            *body,
            "</svg>\n",
        )
    )


def text_element(x: float, y: float, text: str, style: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escaped(text)}</text>'


def escaped(text: str) -> str:
    """Text for XML, which has no control characters at all."""
    return escape("".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))
