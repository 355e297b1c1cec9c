"""Where in the text a node of the syntax tree stands.

sqlglot gives places to identifiers, literals, stars and the names of functions alone, and our dialect to the
nodes it builds. The place of any other node reaches from the first to the last of what is in it; one without
any takes its parent's.
"""

from __future__ import annotations

from sqlglot import exp

from plait.errors import Source, Span


def span_of(node: exp.Expr, source: Source) -> Span:
    """The place of a node in the source that it was parsed from."""
    current: exp.Expr | None = node
    while current is not None:
        start, end = _extent(current)
        if start is not None and end is not None:
            return Span(source, start, _past_closing_parentheses(source.text, start, end + 1))
        current = current.parent
    return Span(source, 0, len(source.text))


def _extent(node: exp.Expr) -> tuple[int | None, int | None]:
    start: int | None = None
    end: int | None = None
    for part in node.walk():
        first, last = part.meta.get("start"), part.meta.get("end")
        if first is not None and last is not None:
            start = first if start is None else min(start, first)
            end = last if end is None else max(end, last)
    return start, end


def _past_closing_parentheses(text: str, start: int, end: int) -> int:
    """A call's last argument ends before its parenthesis: take in those that the span opens."""
    open_parentheses = text.count("(", start, end) - text.count(")", start, end)
    while open_parentheses > 0:
        following = end + len(text[end : end + 100]) - len(text[end : end + 100].lstrip())
        if text[following : following + 1] != ")":
            break
        end = following + 1
        open_parentheses -= 1
    return end
