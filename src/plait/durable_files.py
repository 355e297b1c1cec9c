"""Files that are there as a whole or not at all, also after a power cut."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

DRAFT = "_draft."  # readers ignore names that begin with an underscore


def write_durably(path: Path, content: bytes) -> None:
    with durable_file(path) as file:
        file.write(content)


@contextmanager
def durable_file(path: Path) -> Iterator[IO[bytes]]:
    """Write beside, flush to the disk, rename into place. An existing file is replaced."""
    draft = path.with_name(f"{DRAFT}{path.name}.part")  # which no `*.parquet` finds
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        # On a full disk a draft that stays would take what others need.
        draft.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """What was renamed or created in the folder is on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
