"""Two runs on one state folder are impossible: a run holds the folder's lock as long as its process lives.

The lock is the system's (`flock`), so that it goes with the process, however that ends. The file's content
says who holds it and is for messages only.
"""

from __future__ import annotations

import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path

from plait.errors import UserError


class FolderLock:
    """Held from the moment it is made until `release`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = _locked(path)
        started = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps({"pid": os.getpid(), "started": started}).encode(), 0)

    @property
    def is_there(self) -> bool:
        """Whether the file is still where it was: otherwise somebody has taken the folder away."""
        return _is_same(self._path, self._descriptor)

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_locked(path: Path) -> bool:
    """Whether a run holds it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _locked(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise UserError(
                "state-in-use",
                f"another run uses the state folder {path.parent}{_holder(path)}",
                hint="wait until it ends, stop it, or give this run a --state folder of its own",
            ) from None
        # Whoever held it may have removed the file between the two steps: then the lock is of no file.
        if _is_same(path, descriptor):
            return descriptor
        os.close(descriptor)


def _is_same(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        return f": process {holder['pid']}, since {holder['started']} UTC"
    except (OSError, ValueError, KeyError, TypeError):
        return ""  # it is just being written
