"""Files that are written completely or not at all, and never over what is read."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from plait.errors import ExternalError, UserError


def write_atomically(path: Path, text: str) -> None:
    with written_atomically(path) as file:
        file.write(text.encode())


@contextmanager
def written_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Write beside the target, then rename: a reader, or a crash, never meets half a file.

    A link stays a link: the file that it leads to is replaced, and keeps its permissions.
    """
    temporary: str | None = None
    try:
        target = Path(os.path.realpath(path))
        mode = _mode_of(path, target)
        handle, temporary = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".tmp"
        )
        with os.fdopen(handle, "wb") as file:
            yield file
        # mkstemp makes private files; a result is as readable as the old one, or as any other new file.
        Path(temporary).chmod(mode)
        Path(temporary).replace(target)
    except BaseException as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError | ValueError):  # a name with NUL in it is a ValueError
            reason = error.strerror if isinstance(error, OSError) else None
            raise ExternalError("output", f"cannot write {path}: {reason or error}") from error
        raise


def check_overwrites_nothing_read(output: str | None, read: Iterable[Path]) -> None:
    """Refuse an output that is one of the files, or a file in one of the folders, that are read.

    A new file counts too in a folder: from then on it would be data.
    """
    if output is None:
        return
    try:
        target = Path(os.path.realpath(output))
        places = [Path(os.path.realpath(each)) for each in read]
        if target.exists():
            if any(_is_in(target, place) for place in places):
                raise UserError(
                    "output-is-input",
                    f"{output} is read by this command, and would be overwritten",
                    hint="name another file",
                )
        elif any(target.is_relative_to(place) and place.is_dir() for place in places):
            raise UserError(
                "output-is-input",
                f"{output} would be in a folder whose files are read as data",
                hint="name a file in another folder",
            )
    except (OSError, ValueError):
        return  # writing it will say what is wrong with it


def _is_in(target: Path, read: Path) -> bool:
    if target.is_relative_to(read):
        return True
    return read.exists() and target.samefile(read)  # another name of the same file


def _mode_of(path: Path, target: Path) -> int:
    """The permissions of the file to be written, if a file may be written there at all."""
    if not target.parent.is_dir():
        raise UserError("output-folder", f"there is no folder {path.parent}", hint=f"mkdir -p {path.parent}")
    try:
        existing = target.stat()
    except FileNotFoundError:
        return 0o666 & ~_umask()
    if stat.S_ISDIR(existing.st_mode):
        raise UserError("output-folder", f"{path} is a folder", hint="name a file in it")
    if not stat.S_ISREG(existing.st_mode):
        raise UserError(
            "output-file",
            f"{path} is no file, but a device or a pipe",
            hint=f"leave it out, and add > {path}",
        )
    if not os.access(target, os.W_OK):
        raise PermissionError(None, "it is write-protected")
    return stat.S_IMODE(existing.st_mode)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
