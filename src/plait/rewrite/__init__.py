"""Rewrites a bound plan into its canonical form.

Queries that differ in aliases, in the order of predicates and inputs, or in spelling get the same plan, so
that their signatures find what they share (`plait.plan.signature` has the guarantee). A rule is a function
from plan to plan, in a module of its own, whose docstring says why it is sound. The driver runs `RULES` in
order until nothing changes, checks after every rule what must not change, and names the rule if it did.

Deliberately not done, because it is not sound or not worth its rules: moving arithmetic across comparisons
(overflow is NULL), regrouping sums (of doubles, and of integers that may overflow on the way), reordering
outer joins among themselves or with inner joins (window conditions hold between all present streams, so the
order matters), moving anything across row windows and tops, pulling equal projects out of a union, dropping
a group key that a filter fixes, and equalities between computed values that follow from those of their parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from plait.errors import InternalError
from plait.expressions.keeping import kept
from plait.plan.format import format_plans
from plait.plan.invariants import check_rewrite
from plait.plan.nodes import Node
from plait.recursion import deeper_recursion
from plait.rewrite.derive_equalities import derive_equalities
from plait.rewrite.drop_idle_windows import drop_idle_windows
from plait.rewrite.empty_contradictions import empty_contradictions
from plait.rewrite.flatten_joins import flatten_joins
from plait.rewrite.flatten_unions import flatten_unions
from plait.rewrite.merge_equal_subplans import Merger, merge_equal_subplans
from plait.rewrite.normalise_aggregates import normalise_aggregates
from plait.rewrite.normalise_expressions import normalise_expressions
from plait.rewrite.normalise_orders import normalise_orders
from plait.rewrite.order_inputs import order_inputs
from plait.rewrite.prune_columns import prune_columns
from plait.rewrite.pull_up_projects import pull_up_projects
from plait.rewrite.push_down_filters import push_down_filters
from plait.rewrite.turn_right_joins import turn_right_joins
from plait.rewrite.unify_equal_columns import unify_equal_columns
from plait.rewrite.use_null_rejection import use_null_rejection

__all__ = ["MAX_ROUNDS", "RULES", "Merger", "Rule", "canonicalise"]

Rule: TypeAlias = Callable[[Node], Node]

RULES: tuple[Rule, ...] = (
    # First what makes the rest see plainly: one spelling of expressions, one kind of one-sided outer join,
    # no windows and no projects in the way. The rules below expect that, and build their own nodes like that.
    normalise_expressions,
    turn_right_joins,
    drop_idle_windows,
    pull_up_projects,
    # Before joins are flattened: an outer join that becomes inner is one more to flatten.
    use_null_rejection,
    flatten_unions,
    flatten_joins,
    # Needs the whole conjunction of a flat join; what it derives is of single inputs, so it goes before the
    # push.
    derive_equalities,
    # Needs the contradictions that equalities bring out; what remains is little for the rules below.
    empty_contradictions,
    push_down_filters,
    # Needs the filters in place, since it goes by what they guarantee.
    unify_equal_columns,
    normalise_aggregates,
    normalise_orders,
    # Columns used only by terms that are gone are unused now.
    prune_columns,
    # Last, since it orders inputs by what they are, down to the columns they have.
    order_inputs,
    merge_equal_subplans,
)

# Each round moves what the one before has uncovered, such as a filter through one more nested query.
MAX_ROUNDS = 200


def canonicalise(plan: Node, merger: Merger | None = None) -> Node:
    """The canonical form of a plan.

    With a `merger` shared by many plans, equal sub-plans of all of them become the same objects.
    """
    form = _canonical(plan)
    return form if merger is None else merger.merge(form)


@kept
def _canonical(plan: Node) -> Node:
    with deeper_recursion():
        for _ in range(MAX_ROUNDS):
            before = plan
            for rule in RULES:
                after = rule(plan)
                if after is not plan:
                    check_rewrite(rule.__name__, plan, after)
                    plan = after
            if plan == before:
                return plan
    raise InternalError(
        "rewrite",
        f"the plan still changes after {MAX_ROUNDS} rounds of rewriting",
        detail=format_plans({"plan": plan}),
        hint="this is a bug in Plait: please report it with the query",
    )
