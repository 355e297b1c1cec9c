"""Errors name secrets by their variables."""

from __future__ import annotations

import pytest

from plait.errors import ExternalError
from plait.language import load_text
from plait.runtime.veil import Veil


def test_errors_show_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    monkeypatch.setenv("FOLDER", "/data/of/hunter2")
    workload = load_text(
        """
        CREATE STREAM s (a INT, at TIMESTAMP, WATERMARK FOR at AS at)
          WITH (connector = 'spark', format = 'kafka', option.password = '${TOKEN}', path = '${FOLDER}/x');
        CREATE CONTINUOUS QUERY q WITH (sink = 'spark', format = 'jdbc', option.url = 'db?key=${TOKEN}')
          AS SELECT a FROM s;
        """
    )
    error = ExternalError(
        "spark", "cannot read /data/of/hunter2/x", detail="password: hunter2", hint="look at db?key=hunter2"
    )
    shown = Veil(workload).over(error).render()
    assert "hunter2" not in shown
    for name in ("${FOLDER}/x", "password: ${TOKEN}", "db?key=${TOKEN}"):
        assert name in shown
