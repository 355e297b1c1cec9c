"""Files that are there as a whole or not at all, also after a power cut."""

from __future__ import annotations

import os
from pathlib import Path

DRAFT = "_draft."  # readers ignore names that begin with an underscore


def write_durably(path: Path, content: bytes) -> None:
    """Write beside, flush to the disk, rename into place. An existing file is replaced."""
    draft = path.with_name(f"{DRAFT}{path.name}")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """What was renamed or created in the folder is on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
