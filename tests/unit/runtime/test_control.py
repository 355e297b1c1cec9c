"""Requests through a socket: answers, errors as they are, and what is said where nobody listens."""

from __future__ import annotations

import socket
import stat
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from plait.errors import ExternalError, PlaitError, Source, Span, UserError
from plait.runtime.control import ControlServer, ToldError, ask


def echo(request: Mapping[str, Any]) -> Any:
    match request["do"]:
        case "fail":
            span = Span(Source("some.sql", "SELECT nothing"), 7, 14)
            raise UserError(
                "unknown-column", "there is no column", detail="why", hint="what to do", span=span
            )
        case "break":
            raise ZeroDivisionError("by chance")
        case _:
            return {"heard": request["do"]}


@pytest.mark.parametrize("name", ["state", "a folder with a name of so many signs" * 5])
def test_a_request_is_answered(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    with closing(ControlServer(folder / "control.sock", echo)):
        assert ask(folder / "control.sock", {"do": "größer"}) == {"heard": "größer"}
        assert stat.S_IMODE((folder / "control.sock").stat().st_mode) == 0o600
    assert not [*folder.iterdir()]


def test_errors_come_as_they_are(tmp_path: Path) -> None:
    with closing(ControlServer(tmp_path / "s", echo)):
        with pytest.raises(ToldError) as told:
            ask(tmp_path / "s", {"do": "fail"})
        with pytest.raises(PlaitError) as broken:
            ask(tmp_path / "s", {"do": "break"})
        assert ask(tmp_path / "s", {"do": "go on"}) == {"heard": "go on"}
    error = told.value
    assert (error.code, error.detail, error.hint, error.exit_code) == (
        "unknown-column",
        "why",
        "what to do",
        2,
    )
    assert "--> some.sql:1:8" in error.render()
    assert error.to_json()["errors"][0]["line"] == 1
    assert "ZeroDivisionError" in broken.value.detail
    assert broken.value.exit_code == 70


def test_requests_that_are_none(tmp_path: Path) -> None:
    with closing(ControlServer(tmp_path / "s", echo)):
        for text in (b"{\n", b"[1]\n"):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(tmp_path / "s"))
                connection.sendall(text)
                assert b"unknown-request" in connection.makefile("rb").readline()


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no system runs with the state folder") as raised:
        ask(tmp_path / "state" / "control.sock", {"do": "list"})
    assert "--state" in raised.value.hint
    with socket.socket(socket.AF_UNIX) as left:  # by a process that was killed
        left.bind(str(tmp_path / "s"))
    with pytest.raises(UserError, match="no system runs"):
        ask(tmp_path / "s", {"do": "list"})
    ControlServer(tmp_path / "s", echo).close()


def test_an_end_before_the_answer(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as ending:
        ending.bind(str(tmp_path / "s"))
        ending.listen()

        def end() -> None:
            for _ in range(2):
                connection, _address = ending.accept()
                connection.makefile("rb").readline()
                connection.close()

        thread = Thread(target=end)
        thread.start()
        with pytest.raises(ExternalError, match="ended before it answered"):
            ask(tmp_path / "s", {"do": "add"})
        assert ask(tmp_path / "s", {"do": "stop"}, may_end=True) is None
        thread.join()
