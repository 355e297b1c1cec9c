"""Lets a folder that is ready take the place of another, in one step.

Whoever lists the folder finds the files of before or those of after, never some of both. That is a call of
Linux (`renameat2` with `RENAME_EXCHANGE`), which file systems on a disk know and some on a network do not;
then it is refused, and nothing has changed. What is made ready stands in the state folder, or beside the
folder of results if that is on another disk: a pattern over all results must not find rows twice.

Killed at any moment, the folder is that of before or that of after, and what stands in the other place is
removed by the next start: all of it is in the folder, too.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from shutil import copystat, rmtree

from plait.durable_files import DRAFT, flush_folder
from plait.errors import UnsupportedError
from plait.failpoints import reach
from plait.runtime.results_folder import held

BESIDE = ".plait-exchange"
_HERE = -100  # AT_FDCWD: paths are as they are
_EXCHANGE = 2  # RENAME_EXCHANGE
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV, errno.EBUSY, errno.EPERM, errno.EMLINK)


def replaced(folder: Path, state: Path, gone: Collection[str], write: Callable[[Path], object]) -> Path:
    """Let a folder without the files that are `gone`, and with those that `write` puts into the folder that
    it is given, take the place of this one. What stood there is returned: somebody may still be listing
    it."""
    real = folder.resolve()  # a link to it stays
    draft = place_beside(folder, state)
    rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        write(draft)
        copystat(real, draft)
        reach("exchange-prepared")
        _link(real, draft, gone)
        with held(folder):
            _link(real, draft, gone)  # what was published since
            flush_folder(draft)
            _exchange(draft, real)
    except OSError as error:
        rmtree(draft, ignore_errors=True)
        if error.errno in _CANNOT:
            raise _refused(folder, error) from None
        raise
    except BaseException:
        rmtree(draft, ignore_errors=True)
        raise
    reach("exchange-made")
    flush_folder(real.parent)
    return draft


def discard(place: Path, folder: Path) -> None:
    """Remove what stood where the folder is now. What is in that, too, goes first: whoever is still listing
    it then knows only files that are not there any more, and is told so."""
    for path in place.iterdir():
        if (folder / path.name).exists():
            path.unlink()
    rmtree(place, ignore_errors=True)


def place_beside(folder: Path, state: Path) -> Path:
    """Where what takes the folder's place is made ready."""
    real = folder.resolve()
    is_one_disk = state.stat().st_dev == real.parent.stat().st_dev
    name = f"{real.name}-{sha256(os.fsencode(real)).hexdigest()[:8]}"
    return (state.resolve() if is_one_disk else real.parent) / BESIDE / name


def clear(folder: Path, state: Path) -> None:
    """Remove what a process that was killed may have left."""
    if folder.is_dir():
        place = place_beside(folder, state)
        rmtree(place, ignore_errors=True)
        with suppress(OSError):  # those of other folders may be there
            place.parent.rmdir()


def _link(real: Path, draft: Path, gone: Collection[str]) -> None:
    """Give the draft what the folder has and it has not."""
    there = {path.name for path in draft.iterdir()}
    for path in real.iterdir():
        if path.name in there or path.name in gone or path.name.startswith(DRAFT):
            continue
        if path.is_dir() and not path.is_symlink():
            raise UnsupportedError(
                "exchange",
                f"{path} is a folder, and none of ours",
                hint="put it elsewhere: only folders of files can be compacted",
            )
        os.link(path, draft / path.name, follow_symlinks=False)


def _exchange(one: Path, other: Path) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    try:
        rename = library.renameat2
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _refused(folder: Path, error: OSError) -> UnsupportedError:
    return UnsupportedError(
        "exchange",
        f"the files in {folder} cannot be merged: {error.strerror}",
        detail="readers must find the files of before or those of after, which takes a file system that can "
        "exchange two folders at once",
        hint="nothing has changed; put the results on a local disk of Linux, or let the files be as they are",
    )
