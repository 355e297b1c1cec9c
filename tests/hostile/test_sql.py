"""Every hostile text gives clear errors: the stated codes, a place, a reason; exit code 2, and no more."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.hostile.cases import CASES, SECRETS, Case

from plait.cli import run

SECONDS_ALLOWED = 5.0
WITHOUT_PLACE = {"source-size", "too-many-errors"}  # errors of a whole text


def test_there_are_enough_and_they_have_names() -> None:
    assert len(CASES) >= 150
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_hostile_text_is_refused_clearly(
    case: Case, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "hostile.sql"
    file.write_text(case.text, encoding="utf-8")

    started = time.process_time()  # not the clock: the machine may have other work
    exit_code = run(["check", str(file), "--json"])
    assert time.process_time() - started < SECONDS_ALLOWED

    output = capfd.readouterr()
    assert exit_code == 2
    assert not output.err
    errors = json.loads(output.out)["errors"]
    assert {error["code"] for error in errors} == case.codes
    for error in errors:
        assert error["message"]
        assert error["kind"] in ("error", "unsupported")
        assert error["kind"] == "error" or error["hint"], "what works instead is said"
        assert "line" in error or error["code"] in WITHOUT_PLACE, "the place is shown"
        assert len(error["message"]) < 500
    assert case.hint in " ".join(error["hint"] for error in errors)
    assert not any(value.strip("./") in output.out for value in SECRETS.values())
    assert [entry.name for entry in tmp_path.iterdir()] == ["hostile.sql"]


@pytest.mark.parametrize("case", CASES[::7], ids=[case.name for case in CASES[::7]])
def test_errors_are_shown_with_their_place(
    case: Case, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "hostile.sql"
    file.write_text(case.text, encoding="utf-8")
    assert run(["check", str(file)]) == 2
    output = capfd.readouterr()
    assert not output.out
    assert "Traceback" not in output.err
    first_error = output.err.split("\n\n")[0]
    assert any(f"[{code}]: " in first_error for code in case.codes)
    assert max(map(len, output.err.splitlines())) < 1000
    if not case.codes & WITHOUT_PLACE:
        assert f"--> {file}:" in first_error
        assert "^" in first_error
