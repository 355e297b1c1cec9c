"""What a change of the set of queries does to the fragments that run, as a list of plain stages.

`Assembly.prepare` makes them, and `plait.runtime.difference` says them: both go by the same list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from plait.deployment.fragments import Fragment, Way
from plait.runtime.query_set import QuerySet


@dataclass(frozen=True)
class StartStage:
    """A fragment that is new."""

    fragment: Fragment


@dataclass(frozen=True)
class ChangeStage:
    """A fragment that computes other queries from its next batch on."""

    before: Fragment
    fragment: Fragment


@dataclass(frozen=True)
class SilenceStage:
    """A fragment that goes on as it is, and leaves out the rows of some of its queries from now on."""

    fragment: Fragment
    queries: tuple[str, ...]


@dataclass(frozen=True)
class HandOverStage:
    """A fragment on Spark's operators that goes on as it is, and gives the rows of some of its queries until
    an event time: another gives the later ones."""

    fragment: Fragment


@dataclass(frozen=True)
class KeepStage:
    """A fragment that does not notice."""

    fragment: Fragment


@dataclass(frozen=True)
class StopStage:
    """A fragment that nobody needs any more."""

    fragment: Fragment


Stage: TypeAlias = StartStage | ChangeStage | SilenceStage | HandOverStage | KeepStage | StopStage


def is_handing_over(before: Fragment, after: Fragment) -> bool:
    """Whether a fragment hands queries over, and that is all that happens to it."""
    queries = [[result.query for result in each.results] for each in (before, after)]
    return queries[0] == queries[1] and before.results != after.results


def stages_between(now: QuerySet, then: QuerySet) -> list[Stage]:
    """What happens to each: in the order of those that there are then, and at last those that end."""
    before = {each.name: each for each in now.fragments}
    stages: list[Stage] = []
    for each in then.fragments:
        earlier = before.pop(each.name, None)
        # Those of before are left out already, and their fragment may be in the middle of a batch.
        newly = then.silent.get(each.name, {}).keys() - now.silent.get(each.name, {}).keys()
        silent = tuple(result.query for result in each.results if result.query in newly)
        if earlier is None:
            stages.append(StartStage(each))
        elif earlier is not each and each.way is Way.SHARED:
            stages.append(ChangeStage(earlier, each))
        elif earlier is not each:
            stages.append(HandOverStage(each))
        elif silent:
            stages.append(SilenceStage(each, silent))
        else:
            stages.append(KeepStage(each))
    return [*stages, *(StopStage(each) for each in before.values())]
