"""Queries that a trunk computes, without Spark: put together as a run does it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from plait.catalog import Catalog
from plait.deployment.fragments import Fragment
from plait.deployment.row_by_row import row_by_row
from plait.engines.shared import group
from plait.engines.shared.group import SharedQuery
from plait.engines.shared.trunk import Trunk
from plait.plan.nodes import Node, StreamScan
from plait.sharing.families import Families
from plait.sharing.tagged import TaggedPlans, _Kind, _Outline


def scans_of(fragment: Fragment) -> dict[str, StreamScan]:
    """What is handed over of each stream, by its key."""
    return {each.stream.lower(): row_by_row(each.plan).scan for each in fragment.inputs}


def queries_of(fragment: Fragment) -> list[SharedQuery]:
    return [SharedQuery(each.query, each.plan, part=each.part) for each in fragment.results]


def trunk_of(fragment: Fragment, catalog: Catalog, path: Path) -> Trunk:
    scans = scans_of(fragment)
    streams = {key: catalog.stream(key) for key in scans}
    return Trunk(queries_of(fragment), streams, scans, path)


def compute_by_plans(patch: pytest.MonkeyPatch) -> None:
    """Let trunks find no families, and no plans that are equal but for constants: every query is then
    computed by its own plan."""

    def none(
        queries: Iterable[tuple[str, Node]], scans: Mapping[str, StreamScan], *, parts: Mapping[str, str]
    ) -> Families:
        del scans, parts
        return Families(others=[name for name, _ in queries])

    patch.setattr(group, "families", none)
    patch.setattr(TaggedPlans, "_outline", lambda _, node: _Outline(node, _Kind.PLAIN))
