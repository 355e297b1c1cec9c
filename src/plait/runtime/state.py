"""The state folder: all that a run needs to go on where an earlier one was stopped or killed.

```
STATE/plait-state.json                         what the state is of, how the set of queries has changed since
                                               it was begun, and whether its streams have ended; the texts
                                               that it was begun with
STATE/control.sock                             where a run takes requests, while it lives
STATE/results.json                             where the rows of each query come out, for readers
STATE/statistics.sqlite                        what was observed, as a time series
STATE/lock, STATE/spark-lock                   held while a run, and its Spark, live
STATE/tables/                                  versions of stored tables that batches may need again
STATE/fragments/NAME/{checkpoint,beats,journal.sqlite,state.duckdb}
STATE/streams/KEY/{checkpoint,bad,tickets,journal.sqlite}
```

Opening one decides whether to go on, to begin, or to refuse; before that only its lock is taken.
Refused is a folder that is in use, is damaged, belongs to another version, to other queries, or to streams
that have ended: in each of these cases going on could lose or double rows. The folder is the state's from
the moment its manifest is there, which is written last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

from plait.deployment.fragments import Way
from plait.durable_files import DRAFT, write_durably
from plait.errors import ExternalError, UserError
from plait.failpoints import reach
from plait.runtime.changes import Change
from plait.runtime.checkpoint import Checkpoint
from plait.runtime.declarations import Declarations, difference
from plait.runtime.folder_names import folder_name
from plait.runtime.journal import Journal
from plait.runtime.lock import FolderLock
from plait.runtime.manifest import FORMAT, Manifest, Phase
from plait.runtime.outlets import FILE as RESULTS
from plait.runtime.settled import Origin, Settled
from plait.runtime.state_key import LOCK, MANIFEST, StateKey
from plait.runtime.statistics_file import FILE as STATISTICS

CONTROL = "control.sock"
SPARK_LOCK = "spark-lock"
_FOLDERS = ("fragments", "streams", "tables")

ANEW = "start anew with other --state and --results folders, or delete both"


@dataclass(frozen=True)
class FragmentFolder:
    """Where a fragment keeps what it needs to go on."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def beats(self) -> Path:
        return self.path / "beats"

    @property
    def journal(self) -> Path:
        return self.path / "journal.sqlite"

    @property
    def database(self) -> Path:
        return self.path / "state.duckdb"


@dataclass(frozen=True)
class StreamFolder:
    """Where the intake of a stream, if it has one, keeps what it needs to go on; and the bad records."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def bad(self) -> Path:
        return self.path / "bad"

    @property
    def tickets(self) -> Path:
        """Of a generated stream: what lay in the past when it was first run."""
        return self.path / "tickets"

    @property
    def journal(self) -> Path:
        return self.path / "journal.sqlite"


class StateFolder:
    """An open state folder, which no other run can open until it is closed."""

    def __init__(self, path: Path, lock: FolderLock, manifest: Manifest, *, is_new: bool) -> None:
        self.path = path
        self.is_new = is_new
        self.manifest = manifest
        self._lock = lock

    @classmethod
    def open(
        cls, path: Path, declarations: Declarations, *, planner: str, spark: str, drain: bool
    ) -> StateFolder:
        """The state of these declarations, to go on with or, if there is none, to begin with.

        A new one is there for good after `create`. `drain`: whether this run will end the streams.
        """
        path = path.absolute()
        _check_path(path)
        lock = _lock(path)
        try:
            document = _read_manifest(path)
            if document is None:
                _check_not_begun(path)
                manifest = Manifest(str(uuid4()), version("plait"), spark, planner, Phase.OPEN, declarations)
                return cls(path, lock, manifest, is_new=True)
            manifest = _checked(path, document, spark)
            _check_declarations(path, manifest, declarations, planner)
            _check_phase(path, manifest, drain)
            return cls(path, lock, manifest, is_new=False)
        except BaseException:
            lock.release()
            raise

    @staticmethod
    def look(path: Path) -> Manifest:
        """What a state folder says of itself, while a run may be using it. Nothing is locked or written."""
        document = _read_manifest(path)
        if document is None:
            raise UserError(
                "no-state",
                f"{path} is no state folder of a run",
                hint="name the one that `plait run` writes to",
            )
        return _checked(path, document, spark=None)

    @property
    def id(self) -> str:
        return self.manifest.id

    @property
    def key(self) -> StateKey:
        return StateKey(self.id, self.path)

    @property
    def spark_lock(self) -> Path:
        return self.path / SPARK_LOCK

    @property
    def tables(self) -> Path:
        return self.path / "tables"

    def fragment(self, name: str) -> FragmentFolder:
        return FragmentFolder(self.path / "fragments" / folder_name(name))

    def stream(self, name: str) -> StreamFolder:
        return StreamFolder(self.path / "streams" / folder_name(name))

    def check_there(self) -> None:
        """An error if somebody has taken the folder away. What has files open in it would go on writing to
        these, and Spark make a new folder: no later run could go on from either."""
        if not self._lock.is_there:
            raise ExternalError(
                "state-gone",
                f"the state folder {self.path} is not there any more, so the run has ended",
                hint="bring it back and start again; or begin anew with other --state and --results folders",
            )

    def prepare(self, fragments: Iterable[str], streams: Iterable[str]) -> None:
        """Make the folders that fragments of these names are built over, and those of streams."""
        with _reported(self.path):
            folders = [self.fragment(name) for name in fragments]
            logs = [self.stream(name) for name in streams]
            if self.is_new:
                # A start that was killed may have left some, for what was declared then.
                for path in (*(each.path for each in folders), *(log.path for log in logs)):
                    rmtree(path, ignore_errors=True)
            for folder in folders:
                folder.beats.mkdir(parents=True, exist_ok=True)
            for log in logs:
                log.bad.mkdir(parents=True, exist_ok=True)
            self.tables.mkdir(exist_ok=True)

    def prepare_anew(self, fragments: Iterable[str], streams: Iterable[str]) -> None:
        """The same for what was not there before. A change that was cut off may have left something."""
        fragments, streams = [*fragments], [*streams]
        paths = [*(self.fragment(name).path for name in fragments), *(self.stream(s).path for s in streams)]
        for path in paths:
            rmtree(path, ignore_errors=True)
        self.prepare(fragments, streams)

    def add(self, change: Change) -> None:
        """Write down a change: from now on it is there, whatever happens."""
        self._become(replace(self.manifest, changes=(*self.manifest.changes, change)))

    def settle(self, settled: Settled) -> None:
        """Write down what all changes have led to, in their place. Where rows come out is written down
        before."""
        self._become(replace(self.manifest, changes=(), settled=settled))
        reach("changes-settled")

    def begin_with(self, origin: Origin) -> None:
        """Write down what the first set of queries is made of, of a new state when it is created."""
        if origin != self.manifest.origin:
            self._become(replace(self.manifest, origin=origin))

    def _become(self, manifest: Manifest) -> None:
        before = self.manifest
        self.manifest = manifest
        try:
            with _reported(self.path):
                if not self.is_new:
                    self._write()
        except BaseException:
            self.manifest = before
            raise

    def create(self) -> None:
        """Write down a new state, of which nothing has run. From now on runs go on with it."""
        with _reported(self.path):
            self._write()
        self.is_new = False
        reach("state-created")

    def enter(self, phase: Phase) -> None:
        with _reported(self.path):
            self.manifest = replace(self.manifest, phase=phase)
            self._write()

    def remove(self, fragment: str) -> None:
        """Remove what a fragment has left that is not there any more, as far as that can be done now."""
        rmtree(self.fragment(fragment).path, ignore_errors=True)

    def remove_others(self, fragments: Iterable[str], streams: Iterable[str]) -> None:
        """Remove what fragments have left that are not there any more, and what they have counted of
        streams."""
        kept = {
            *(self.fragment(name).path for name in fragments),
            *(self.stream(name).path for name in streams),
        }
        with _reported(self.path):
            for folder in ("fragments", "streams"):
                for path in (self.path / folder).iterdir():
                    if path not in kept:
                        rmtree(path)

    def close(self) -> None:
        if self.is_new:
            _remove_unbegun(self.path)
        self._lock.release()

    def _write(self) -> None:
        text = json.dumps(self.manifest.to_json(), ensure_ascii=False)
        write_durably(self.path / MANIFEST, text.encode())

    def check_contents(self, fragments: Mapping[str, str], logs: Mapping[str, str | None]) -> None:
        """Refuse a damaged state of fragments of these names and ways, and of what they, or nobody else,
        write down of streams."""
        for name, way in fragments.items():
            folder = self.fragment(name)
            _check_batches(self.path, f"`{name}`", folder.checkpoint, folder.journal)
            if way == Way.SHARED and _has_finished(folder) and not folder.database.exists():
                raise damaged(self.path, f"of `{name}` the file {folder.database.name} is missing")
        for name, reader in logs.items():
            source = self.stream(name)
            checkpoint = source.checkpoint if reader is None else self.fragment(reader).checkpoint
            _check_batches(self.path, f"stream `{name}`", checkpoint, source.journal)


def state_id(path: Path) -> str:
    """The id of a state, which nobody has to open."""
    document = _read_manifest(path)
    if document is None or "id" not in document:
        raise damaged(path, f"{MANIFEST} is missing")
    return str(document["id"])


def _check_path(path: Path) -> None:
    """A folder is ours if our lock is in it, which is the first thing we put there."""
    if any(sign in str(path) for sign in "*?[]{}\\"):
        raise UserError(
            "state-folder",
            f"the name of the state folder {path} has one of the signs * ? [ ] {{ }} \\",
            detail="Spark reads them as a pattern",
            hint="name another folder with --state",
        )
    with _reported(path):
        if not path.exists():
            return
        if not path.is_dir():
            raise UserError("state-folder", f"{path} is no folder", hint="name a folder with --state")
        names = sorted(entry.name for entry in path.iterdir())
    if names and LOCK not in names and MANIFEST not in names:
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        raise UserError(
            "state-folder",
            f"{path} is no state folder, and not empty: it holds {shown}",
            hint="name an empty folder, or one that does not exist yet, with --state",
        )


def _lock(path: Path) -> FolderLock:
    with _reported(path):
        path.mkdir(parents=True, exist_ok=True)
        return FolderLock(path / LOCK)


def _remove_unbegun(path: Path) -> None:
    """Remove what was made for a state that did not come to be."""
    with suppress(OSError):
        for entry in path.iterdir():
            if entry.name in _FOLDERS:
                rmtree(entry)
            elif entry.name in (LOCK, SPARK_LOCK, RESULTS, CONTROL) or entry.name.startswith(
                (DRAFT, STATISTICS)
            ):
                entry.unlink()
        path.rmdir()


def _read_manifest(path: Path) -> dict[str, Any] | None:
    with _reported(path):
        try:
            content = (path / MANIFEST).read_bytes()
        except FileNotFoundError:
            return None
    try:
        document = json.loads(content)
    except ValueError:
        raise damaged(path, f"{MANIFEST} is no JSON") from None
    if not isinstance(document, dict):
        raise damaged(path, f"{MANIFEST} holds no object")
    return document


def _check_not_begun(path: Path) -> None:
    if any(path.glob("*/*/checkpoint/offsets/*")):
        raise damaged(path, f"{MANIFEST} is missing")


def _checked(path: Path, document: dict[str, Any], spark: str | None) -> Manifest:
    if document.get("format") != FORMAT:
        written_by = document.get("plait")
        if written_by in (None, version("plait")):  # before a release, formats change within a version
            raise _other_format(path, document.get("format"))
        raise _other_version(path, "Plait", str(written_by), version("plait"))
    try:
        manifest = Manifest.from_json(document)
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise damaged(path, f"{MANIFEST} is incomplete: {error}") from None
    if manifest.plait != version("plait"):
        raise _other_version(path, "Plait", manifest.plait, version("plait"))
    if spark is not None and _minor(manifest.spark) != _minor(spark):
        raise _other_version(path, "Spark", manifest.spark, spark)
    return manifest


def _minor(release: str) -> str:
    """Spark reads its own checkpoints within 4.2, and promises little beyond.

    >>> _minor("4.2.0")
    '4.2'
    """
    return ".".join(release.split(".")[:2])


def _other_format(path: Path, theirs: object) -> UserError:
    return UserError(
        "state-version",
        f"the state in {path} was written by another version of Plait",
        detail=f"it has format {theirs}, this version reads and writes format {FORMAT}",
        hint=f"run it with the version that wrote it; or {ANEW}",
    )


def _other_version(path: Path, product: str, theirs: str, ours: str) -> UserError:
    return UserError(
        "state-version",
        f"the state in {path} was written with {product} {theirs}, and this is {product} {ours}",
        detail="a state may mean something else to another version",
        hint=f"run it with {product} {theirs}; or {ANEW}",
    )


def _check_declarations(path: Path, manifest: Manifest, now: Declarations, planner: str) -> None:
    if manifest.planner != planner:
        raise UserError(
            "state-changed",
            f"the state in {path} was begun with the planner {manifest.planner}, not with {planner}",
            hint=f"go on with --planner {manifest.planner}; or {ANEW}",
        )
    changes = difference(manifest.declarations, now)
    if changes:
        raise UserError(
            "state-changed",
            f"what is declared has changed since the state in {path} was begun",
            detail=changes,
            hint=f"put it back to go on; or {ANEW}",
        )


def _check_phase(path: Path, manifest: Manifest, drain: bool) -> None:
    match manifest.phase:
        case Phase.DRAINED:
            raise UserError(
                "state-drained",
                f"the streams of the state in {path} have ended: it was drained",
                detail="all windows were closed, so that every further row would come too late",
                hint=f"the results are complete; for other data, {ANEW}",
            )
        case Phase.DRAINING if not drain:
            raise UserError(
                "state-draining",
                f"the streams of the state in {path} were being ended when the run was stopped",
                hint=f"finish that with --drain; or {ANEW}",
            )
        case Phase.OPEN | Phase.DRAINING:
            pass


def _check_batches(path: Path, whose: str, checkpoint_path: Path, journal_path: Path) -> None:
    """Spark's checkpoint and our journal tell the same story.

    The journal begins a batch after Spark has planned it, and finishes it before Spark commits it.
    """
    checkpoint = Checkpoint(checkpoint_path)
    begun = finished = None
    if journal_path.exists():
        journal = Journal(journal_path)
        begun, finished = journal.last_begun, journal.last_finished
        journal.close()
    checkpoint.check()
    planned, committed = checkpoint.last_planned, checkpoint.last_committed
    if begun is not None and planned is None:
        raise damaged(path, f"of {whose} the checkpoint is missing")
    if begun is not None and planned is not None and begun > planned:
        raise damaged(path, f"of {whose} the checkpoint ends at batch {planned}, before batch {begun}")
    if committed is not None and (finished is None or finished < committed):
        raise damaged(
            path, f"of {whose} the journal ends before batch {committed}, which Spark has committed"
        )


def _has_finished(folder: FragmentFolder) -> bool:
    return Checkpoint(folder.checkpoint).last_committed is not None


def damaged(path: Path, what: str) -> UserError:
    return UserError(
        "state-damaged",
        f"the state in {path} is damaged: {what}",
        hint=f"bring it back from a copy of the whole folder; or {ANEW}",
    )


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Turns what the file system says into an error that names the folder."""
    try:
        yield
    except OSError as error:
        raise ExternalError(
            "state-folder",
            f"the state folder {path} cannot be used: {error.strerror or error}",
            hint="mend it, or name another folder with --state",
        ) from None
