"""Reading SQL: from files or text to a checked workload, or to a report of all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from plait.errors import ErrorReport, PlaitError, Source
from plait.language.attempts import Attempts
from plait.language.bind import bind_queries
from plait.language.catalog_builder import build_catalog
from plait.language.limits import read_source
from plait.language.statements import Statement, parse
from plait.workload import Workload


def load(paths: Sequence[Path | Source]) -> Workload:
    """The workload that the given files, and texts that were read already, declare together, in any order.

    Relative paths in a file start from its folder, those in a text from the current one. Raises `ErrorReport`
    with all errors of all files.
    """
    errors: list[PlaitError] = []
    attempts = Attempts(errors)
    sources = [
        (Path.cwd(), path) if isinstance(path, Source) else (path.parent, attempts.run(read_source, path))
        for path in paths
    ]
    return _load([(folder, source) for folder, source in sources if source is not None], errors)


def load_text(text: str, name: str = "<sql>", base: Path | None = None) -> Workload:
    """The workload that a text declares. Its relative paths start from `base`, or from the current folder."""
    return _load([(Path.cwd() if base is None else base, Source(name, text))], [])


def _load(sources: Iterable[tuple[Path, Source]], errors: list[PlaitError]) -> Workload:
    files: list[tuple[Path, list[Statement]]] = []
    for folder, source in sources:
        statements, found = parse(source)
        files.append((folder, statements))
        errors += found
    declarations = build_catalog(files)
    queries, query_errors = bind_queries(declarations)
    errors += [*declarations.errors, *query_errors]
    if errors:
        raise ErrorReport(errors)
    return Workload(declarations.catalog, queries)
