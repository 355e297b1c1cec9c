"""Queries that run by themselves, without a planner: as fragments, and where their rows come out."""

from __future__ import annotations

from pathlib import Path

from plait.catalog import Catalog
from plait.deployment.fragments import Fragment, Result, Way
from plait.runtime.outlets import Outlet, outlets_of
from plait.workload import Query, Workload


def result_of(query: Query) -> Result:
    return Result(query.name, query.columns, query.plan)


def outlet_of(query: Query, results: Path) -> Outlet:
    fragment = Fragment(query.name, (result_of(query),), (), Way.NATIVE)
    (outlet,) = outlets_of(Workload(Catalog(), {query.name.lower(): query}), [fragment], results).values()
    return outlet
