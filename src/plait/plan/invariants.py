"""What must hold of every plan, and across every rewrite of it.

That a node is legal is checked where it is built (`nodes`). Here is what a single node cannot see: that a
rewrite left alone everything a consumer of the plan relies on. The driver of the rules calls it after each
rule that changed something, so that a wrong rule is named at once.
"""

from __future__ import annotations

from plait.errors import InternalError
from plait.plan.format import format_plans
from plait.plan.nodes import Flowing, Node, Static, Timing, Windowed, sources_of


def check_rewrite(rule: str, before: Node, after: Node) -> None:
    """Raise an `InternalError` that names the rule unless `after` can stand in for `before`.

    Column types and their order are the same, the same sources are read, and the plan relates to time as
    before.
    """
    if after.types != before.types:
        raise _broken(rule, "changed the types of the columns", before, after)
    if not _is_kept(before.timing, after.timing):
        raise _broken(rule, f"changed the timing {before.timing} to {after.timing}", before, after)
    if sources_of(after) != sources_of(before):
        raise _broken(rule, "changed the sources that are read", before, after)


def _is_kept(before: Timing, after: Timing) -> bool:
    """Whether a consumer of the whole plan finds the timing it relies on.

    The root of a plan is used as a stream: each row has one event time, and it does not matter whether that
    is its own, the greatest of those of a combination, or that of a tick. But what ticks goes on ticking.
    """
    if isinstance(before, Flowing | Windowed):
        return not isinstance(after, Static)
    return after == before


def _broken(rule: str, what: str, before: Node, after: Node) -> InternalError:
    return InternalError(
        "rewrite",
        f"the rewrite rule `{rule}` {what}",
        detail=format_plans({"before": before, "after": after}),
        hint="this is a bug in Plait: please report it with the query",
    )
