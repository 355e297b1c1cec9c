"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from plait.errors import ExternalError, UserError


def write_atomically(path: Path, text: str) -> None:
    """Write beside the target, then rename: a reader, or a crash, never meets half a file."""
    temporary: str | None = None
    try:
        if path.is_dir():
            raise UserError("output-folder", f"{path} is a folder", hint="name a file in it")
        if not path.parent.is_dir():
            raise UserError(
                "output-folder", f"there is no folder {path.parent}", hint=f"mkdir -p {path.parent}"
            )
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        # mkstemp makes private files; a result is as readable as any other new file.
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except (OSError, ValueError) as error:  # a name with NUL in it is a ValueError
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        reason = error.strerror if isinstance(error, OSError) else None
        raise ExternalError("output", f"cannot write {path}: {reason or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
