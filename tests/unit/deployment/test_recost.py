"""The independent arithmetic notices every number that was changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from plait.cost.recost import disagreements, overloads, recost
from plait.planners.driver import PlanReport

Path = tuple[str | int, ...]

# Numbers that others follow from; changing a limit or a state changes nothing that is stated.
FOLLOWING = {
    "operators": ("cores", "output_rows_per_s"),
    "flows": ("bytes_per_s",),
    "sites": ("cores_used", "memory_bytes_used", "in_bytes_per_s_used", "out_bytes_per_s_used"),
    "links": ("bytes_per_s_used",),
    "streams": ("rate_rows_per_s",),
}


@pytest.fixture
def document(report: PlanReport) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(report.to_json()))
    return read


def numbers(document: dict[str, Any]) -> Iterator[Path]:
    for table, keys in FOLLOWING.items():
        for index in range(len(document[table])):
            yield from ((table, index, key) for key in keys)
    yield from (("cost", key) for key in document["cost"])
    for index, operator in enumerate(document["operators"]):
        yield from (
            ("operators", index, "input_rows_per_s", place) for place in range(len(operator["inputs"]))
        )


def changed(document: dict[str, Any], path: Path) -> dict[str, Any]:
    altered = copy.deepcopy(document)
    *parents, last = path
    place: Any = altered
    for key in parents:
        place = place[key]
    place[last] = place[last] * 1.01 + 0.01
    return altered


def test_a_plan_agrees_with_its_document(document: dict[str, Any]) -> None:
    assert list(disagreements(document)) == []
    assert list(overloads(document)) == []


def test_any_changed_number_is_noticed(document: dict[str, Any]) -> None:
    unnoticed = [path for path in numbers(document) if not list(disagreements(changed(document, path)))]
    assert unnoticed == []


def test_changed_unit_costs_are_noticed(document: dict[str, Any]) -> None:
    document["unit_costs"]["engines"]["spark"]["scan"]["output_us_per_row"] = 77.0
    assert any("cost/cores" in line for line in disagreements(document))


def test_changed_windows_are_noticed_where_they_are_read_at_every_tick(document: dict[str, Any]) -> None:
    joins = [operator for operator in document["operators"] if operator["kind"] == "window join"]
    joins[0]["windows"][0] = {"kind": "tick", "range_us": 60, "slide_us": 10, "offset_us": 0}
    assert any("input_rows_per_s" in line for line in disagreements(document))


def test_too_small_a_site_is_noticed(document: dict[str, Any]) -> None:
    document["sites"][0]["cores"] = document["sites"][0]["cores_used"] / 2
    document["links"][0]["bandwidth_bytes_per_s"] = 1.0
    assert [line.split(":")[0] for line in overloads(document)] == [
        "cores of here",
        "the link from here to there",
    ]


def test_network_usage_is_rate_times_latency(document: dict[str, Any]) -> None:
    costs = recost(document)
    assert costs["cost/network_bytes_per_s"] > 0
    assert costs["cost/network_bytes_in_transit"] == pytest.approx(costs["cost/network_bytes_per_s"] * 0.02)
