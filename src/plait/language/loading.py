"""Reading SQL: from files or text to a checked workload, or to a report of all that is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from plait.catalog import Catalog
from plait.errors import ErrorReport, PlaitError, Source, UserError
from plait.language.attempts import Attempts
from plait.language.bind import MOST_ERRORS, bind_queries
from plait.language.catalog_builder import build_catalog
from plait.language.limits import MAX_ERRORS, read_source
from plait.language.statements import CreateStream, CreateTable, Statement, parse
from plait.workload import Workload

# Errors of a name that nothing declares.
_MISSING = frozenset({"unknown-relation", "unknown-site"})


def load(paths: Sequence[Path | Source]) -> Workload:
    """The workload that the given files, and texts that were read already, declare together, in any order.

    Relative paths in a file start from its folder, those in a text from the current one. Raises `ErrorReport`
    with all errors of all files.
    """
    errors: list[PlaitError] = []
    attempts = Attempts(errors)
    given: set[Path] = set()
    sources = [
        (Path.cwd(), path)
        if isinstance(path, Source)
        else (path.parent, attempts.run(_read_once, path, given))
        for path in paths
    ]
    return _load([(folder, source) for folder, source in sources if source is not None], errors)


def _read_once(path: Path, given: set[Path]) -> Source:
    source = read_source(path)
    if path.resolve() in given:
        raise UserError("source-file", f"the file {path} is given twice", hint="name it once")
    given.add(path.resolve())
    return source


def load_text(text: str, name: str = "<sql>", base: Path | None = None) -> Workload:
    """The workload that a text declares. Its relative paths start from `base`, or from the current folder."""
    return _load([(Path.cwd() if base is None else base, Source(name, text))], [])


def load_after(known: Workload, source: Source, folder: Path) -> Workload:
    """What a text declares that is read after others: its queries, and all streams, tables and sites.

    It may use whatever is known, queries too, and may not declare any of it again.
    """
    return _load([(folder, source)], [], known)


def load_texts(texts: Sequence[tuple[Path, Source]]) -> Workload:
    """The workload that texts declare together, each with the folder that its paths start from."""
    return _load(texts, [])


def declared_names(source: Source) -> set[str]:
    """The keys of streams and tables that a text declares, as far as it can be read."""
    return {each.name.key for each in parse(source)[0] if isinstance(each, CreateStream | CreateTable)}


def declared_after(known: Catalog, source: Source, folder: Path) -> Catalog:
    """The streams, tables and sites that there are after a text. Its queries are left out."""
    statements, errors = parse(source)
    declarations = build_catalog([(folder, statements)], Workload(known))
    if errors or declarations.errors:
        raise _report([*errors, *declarations.errors])
    return declarations.catalog


def _load(
    sources: Sequence[tuple[Path, Source]], errors: list[PlaitError], known: Workload | None = None
) -> Workload:
    files: list[tuple[Path, list[Statement]]] = []
    for folder, source in sources:
        statements, found = parse(source)
        files.append((folder, statements))
        errors += found
    declarations = build_catalog(files, known)
    queries, query_errors = bind_queries(declarations, known.queries if known is not None else {})
    errors += [*declarations.errors, *query_errors]
    if errors:
        raise _report(errors)
    texts = tuple((folder.absolute(), source) for folder, source in sources)
    return Workload(declarations.catalog, queries, texts)


def _report(errors: Sequence[PlaitError]) -> ErrorReport:
    """All errors, or the first of very many. What is missing in many places is one error."""
    firsts: dict[object, PlaitError] = {}
    places: Counter[object] = Counter()
    for error in ErrorReport(errors).errors:
        key: object = error.message if error.code in _MISSING else id(error)
        firsts.setdefault(key, error)
        places[key] += 1
    for name, error in firsts.items():
        if places[name] > 1:
            more = f"and in {places[name] - 1:,} more place{'s' if places[name] > 2 else ''}"
            error.detail = f"{error.detail}\n{more}".strip()
    shown = list(firsts.values())
    if len(shown) > MAX_ERRORS:
        amount = f"{'at least ' if len(errors) > MOST_ERRORS else ''}{len(shown):,}"
        message = f"there are {amount} errors; the first {MAX_ERRORS} are shown"
        shown = [UserError("too-many-errors", message), *shown[:MAX_ERRORS]]
    return ErrorReport(shown)
