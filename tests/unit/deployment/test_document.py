from __future__ import annotations

import json
from typing import Any

import pytest

from plait import language
from plait.deployment.document import deployment_from_json
from plait.errors import UserError
from plait.planners import driver
from plait.planners.driver import PlanReport

KEYS: dict[str, set[str]] = {
    "queries": {"name", "admitted", "reason", "stream", "site", "columns", "sink"},
    "streams": {"id", "signature", "kind", "sources", "rate_rows_per_s", "row_bytes", "basis"},
    "operators": {
        "id", "kind", "inputs", "windows", "covers", "output", "site", "engine",
        "input_rows_per_s", "output_rows_per_s", "cores", "state_rows", "state_bytes",
    },
    "flows": {"stream", "from", "to", "bytes_per_s"},
    "sites": {
        "name", "cores", "cores_used", "memory_bytes", "memory_bytes_used",
        "in_bytes_per_s", "in_bytes_per_s_used", "out_bytes_per_s", "out_bytes_per_s_used",
    },
    "links": {"from", "to", "bandwidth_bytes_per_s", "latency_us", "bytes_per_s_used"},
}  # fmt: skip

COST = {
    "cores",
    "bottleneck_cores",
    "network_bytes_per_s",
    "network_bytes_in_transit",
    "state_rows",
    "state_bytes",
}


@pytest.fixture
def document(report: PlanReport) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(report.to_json()))
    return read


def test_the_keys_are_those_that_are_documented(document: dict[str, Any]) -> None:
    assert set(document) == {
        "version", "planner", "status", "bound", "seconds", "notices",
        *KEYS, "trees", "joins", "selections", "cost", "unit_costs", "plans",
    }  # fmt: skip
    for key, expected in KEYS.items():
        assert document[key], key
        for entry in document[key]:
            assert set(entry) == expected
    assert set(document["cost"]) == COST
    assert set(document["unit_costs"]) == {
        "profile", "table_refresh_s", "engines", "trees", "joins", "micro_batch_s",
    }  # fmt: skip


def test_the_document_says_what_is_planned(document: dict[str, Any]) -> None:
    queries = {query["name"]: query for query in document["queries"]}
    assert queries["pair"]["stream"] == queries["pair_again"]["stream"]
    assert queries["pair"]["columns"] == ["v", "w"]
    assert queries["pair_again"]["sink"].endswith("results")
    assert not queries["too_much"]["admitted"]
    assert queries["too_much"]["stream"] is None
    assert "the link from `here` to `there`" in queries["too_much"]["reason"]
    assert document["status"] == "feasible"
    assert document["unit_costs"]["profile"] == "uncalibrated"


def test_it_reads_back(report: PlanReport, document: dict[str, Any]) -> None:
    assert PlanReport.from_json(document) == report


def test_secrets_stay_secret(document: dict[str, Any], secret: str) -> None:
    assert secret not in json.dumps(document)


def test_another_version_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="version"):
        deployment_from_json({**document, "version": 99})


def test_a_damaged_document_is_refused(document: dict[str, Any]) -> None:
    del document["operators"][0]["cores"]
    with pytest.raises(UserError, match="damaged"):
        deployment_from_json(document)


def test_numbers_are_numbers_of_json() -> None:
    streams = ", ".join(f"s [RANGE 3000 DAYS] s{number}" for number in range(20))
    equal = " AND ".join(f"s0.k = s{number}.k" for number in range(1, 20))
    workload = language.load_text(
        "CREATE STREAM s (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)"
        " WITH (rate = 1e9, distinct.k = 2);"
        f"CREATE CONTINUOUS QUERY q AS SELECT s0.k FROM {streams} WHERE {equal};"
    )
    json.dumps(driver.plan(workload).to_json(), allow_nan=False)
