"""Planners, by name. A new planner is a module here and a line in `PLANNERS`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from plait.planners.base import Planner
from plait.planners.independent import IndependentPlanner
from plait.planners.plait import PlaitPlanner
from plait.planners.window_trees import OPTIMIZERS, WindowTreePlanner

DEFAULT_PLANNER = PlaitPlanner.name

_ALL: tuple[Planner, ...] = (
    PlaitPlanner(),
    IndependentPlanner(),
    *map(WindowTreePlanner, OPTIMIZERS),
)
PLANNERS: Mapping[str, Planner] = MappingProxyType({planner.name: planner for planner in _ALL})
