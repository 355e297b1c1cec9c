"""How a running system is spoken to: through a socket in its state folder, which its owner alone may open.

A request is a JSON object on one line, and so is the answer: `{"answer": …}`, or `{"errors": […]}` with
errors as they are, place, reason and way out. Requests are dealt with as they come, each in a thread of its
own: what has to wait for others sees to that itself.

The name of a socket may have about a hundred signs. A folder with a longer one is reached by a link with a
short name, which is there only while the socket is made or found.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

from plait.errors import ExternalError, InternalError, PlaitError, UserError

_LONGEST_NAME = 100
_WAITING = 16

Answer = Callable[[Mapping[str, Any]], Any]


class ToldError(PlaitError):
    """Errors of a system in another process, told as that tells them."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        entries = document["errors"]
        first = entries[0]
        super().__init__(first["code"], first["message"], detail=first["detail"], hint=first["hint"])
        self._document = document
        self.exit_code = int(document["exit_code"])
        self._text = str(document["text"])

    def render(self) -> str:
        return self._text

    def to_json(self) -> dict[str, Any]:
        return {"errors": list(self._document["errors"])}


class ControlServer:
    """Answers requests until it is closed. What `answer` raises goes back to whoever asked."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self._path = path
        self._answer = answer
        self._socket = socket.socket(socket.AF_UNIX)
        # It gets its name when it listens; what is there by now is of a process that was killed.
        draft = path.with_name(f"{path.name}.draft")
        draft.unlink(missing_ok=True)
        try:
            with _short(draft) as name:
                self._socket.bind(name)
            draft.chmod(0o600)  # nobody can connect before it listens
            self._socket.listen(_WAITING)
            draft.replace(path)
        except OSError as error:
            self._socket.close()
            raise ExternalError(
                "control", f"cannot make the socket {path}: {error.strerror or error}"
            ) from None
        Thread(target=self._serve, name="plait control", daemon=True).start()

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed
            Thread(target=self._deal_with, args=(connection,), name="plait request", daemon=True).start()

    def _deal_with(self, connection: socket.socket) -> None:
        # Who asks may be gone before the answer: then nobody wants it.
        with suppress(OSError), connection, connection.makefile("rwb") as file:
            line = file.readline()
            if line:
                answer = self._answered(line)
                file.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")

    def _answered(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise UserError("unknown-request", "a request is a JSON object")
            return {"answer": self._answer(request)}
        except PlaitError as error:
            return _told(error)
        except ValueError:
            return _told(UserError("unknown-request", "a request is a JSON object"))
        except Exception as error:  # whatever it is, the system goes on, and who asked has to know
            detail = f"{type(error).__name__}: {error}"
            return _told(InternalError("request", "a request failed", detail=detail))


def ask(path: Path, request: Mapping[str, Any], *, may_end: bool = False) -> Any:
    """What the system answers whose socket that is; its errors are raised here. `may_end`: that it ends is an
    answer, too."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            with _short(path) as name:
                connection.connect(name)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            raise UserError(
                "not-running",
                f"no system runs with the state folder {path.parent}",
                hint="start one with `plait run`, or name its folder with --state DIR",
            ) from None
        except OSError as error:
            raise ExternalError("control", f"cannot open {path}: {error.strerror or error}") from None
        try:
            with connection.makefile("rwb") as file:
                file.write(json.dumps(request, ensure_ascii=False).encode() + b"\n")
                file.flush()
                line = file.readline()
        except OSError:
            line = b""
    if not line and may_end:
        return None
    if not line:
        raise ExternalError(
            "control",
            "the system ended before it answered",
            hint="a change is there as a whole or not at all: `plait list` shows it after the next start",
        )
    document = json.loads(line)
    if "errors" in document:
        raise ToldError(document)
    return document["answer"]


def _told(error: PlaitError) -> dict[str, Any]:
    return {**error.to_json(), "text": error.render(), "exit_code": error.exit_code}


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """A name for the path that is short enough."""
    if len(os.fsencode(path)) <= _LONGEST_NAME:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="plait-") as folder:
        link = Path(folder) / "state"
        link.symlink_to(path.parent.absolute(), target_is_directory=True)
        yield str(link / path.name)


def is_answered(path: Path) -> bool:
    """Whether a system takes requests there."""
    with socket.socket(socket.AF_UNIX) as connection, _short(path) as name:
        return connection.connect_ex(name) == 0
