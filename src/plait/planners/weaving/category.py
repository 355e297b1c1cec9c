"""The categories of optimizers (§4, Table 1)."""

from __future__ import annotations

from enum import StrEnum


class Category(StrEnum):
    """What an optimizer may do with the queries of a node."""

    GROUP_ONLY = "group only"  # every query is a tree of its own
    WEAVE_ONLY = "weave only"  # all queries of a node are one tree
    WEAVE_AND_GROUP = "weave and group"
