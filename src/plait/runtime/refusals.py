"""What a run refuses before Spark is started: all that a look at the queries and folders can find."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from os.path import realpath
from pathlib import Path

from plait.catalog import Catalog, Stream, revealed
from plait.deployment.deployment import Deployment
from plait.deployment.fragments import Result
from plait.errors import InfeasibleError, UnsupportedError, UserError, closest, reported
from plait.plan.nodes import sources_of
from plait.runtime.outlets import Outlet
from plait.runtime.query_set import QuerySet


def check_admitted(deployment: Deployment) -> None:
    """Refuse to run nothing."""
    if not deployment.queries:
        raise UserError("no-queries", "there is no query to run", hint="see docs/language.md")
    if not deployment.admitted:
        reason = deployment.queries[0].reason
        raise InfeasibleError("not-admitted", "no query can be run", detail=reason)


def check_known(given: Iterable[str], catalog: Catalog) -> None:
    """Refuse frames for streams that are not there."""
    for name in given:
        if name not in catalog.streams:
            names = [stream.name for stream in catalog.streams.values()]
            raise UserError("unknown-stream", f"there is no stream `{name}`", hint=closest(name, names))


def check_have_rows(results: Iterable[Result], catalog: Catalog, given: Collection[str]) -> None:
    """Refuse to read streams that nothing brings rows of. `given` are those that have frames, by key."""
    readers: dict[str, str] = {}  # a query of each stream
    for result in results:
        for name in sorted(sources_of(result.plan)[0]):
            readers.setdefault(name, result.query)
    without = []
    for name, query in readers.items():
        stream = catalog.stream(name)
        if not stream.connector and name.lower() not in given:
            error = UserError(
                "no-connector",
                f"the stream `{stream.name}`, which query `{query}` reads, has no connector",
                hint="give it one, such as WITH (connector = 'files', …), or run it in Python "
                f"with streams={{'{stream.name}': DataFrame}}",
                span=stream.span,
            )
            without.append(error)
    if without:
        raise reported(without)


def can_be_read_again(stream: Stream) -> bool:
    """Whether a new reader finds all rows that others have found."""
    if stream.connector in ("files", "generator"):
        return stream.start != "latest"
    begins = (value for key, value in stream.spark_options.items() if key.lower() == "startingoffsets")
    return "earliest" in begins


def check_read_again(
    results: Iterable[Result], catalog: Catalog, given: Collection[str], is_read: Callable[[str], bool]
) -> None:
    """Refuse queries that begin to read streams by themselves which others have read, and which may not give
    again what they gave: rows would be missing that come while they start."""
    for result in results:
        for name in sorted(sources_of(result.plan)[0]):
            stream = catalog.stream(name)
            if is_read(name.lower()) and (name.lower() in given or not can_be_read_again(stream)):
                raise UnsupportedError(
                    "not-read-again",
                    f"the query `{result.query}` cannot be added: it would miss rows of `{stream.name}`",
                    detail="no streaming query that there is can compute it, and a new one reads the stream "
                    "from when it has started, later than those that others have read",
                    hint="let the stream be read from its beginning (option.startingOffsets = 'earliest'), "
                    "or start anew, with the query in its file and another state",
                    span=stream.span,
                )


def check_apart(state: Path, outlets: Iterable[Outlet], queries: QuerySet, given: Collection[str]) -> None:
    """Refuse to write below the folder of a stream: that would be taken for files of the stream."""
    written = {state: "the state"}
    for outlet in outlets:
        if outlet.folder is not None:  # which many queries may share
            written.setdefault(outlet.folder, f"the results of `{outlet.query}`")
    places = {Path(realpath(path)): what for path, what in written.items()}
    for folder, name in _source_folders(queries, given).items():
        what = next((what for path, what in places.items() if path.is_relative_to(folder)), None)
        if what is not None:
            raise UserError(
                "folder-in-source",
                f"{what} would be written into the folder that the stream `{name}` is read from",
                hint="name another with --state or --results, or give the stream its own folder",
            )


def _source_folders(queries: QuerySet, given: Collection[str]) -> Mapping[Path, str]:
    streams = (queries.workload.catalog.stream(key) for key in queries.streams if key not in given)
    return {
        Path(realpath(revealed(stream.options["path"]))): stream.name
        for stream in streams
        if stream.connector == "files"
    }
