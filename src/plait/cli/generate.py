"""`plait generate`: writes the rows of generators as files that `connector = 'files'` reads.

Files are cut by time, at multiples of `--file-every`, and named by the time at which each begins, so that
their names sort as their rows come. A file is there completely or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import IO

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from click.shell_completion import CompletionItem

from plait.cli.files import written_atomically
from plait.cli.invocation import FileName, open_session, progress, terminal_width, write_result
from plait.cli.quantities import DURATION_US, Quantity
from plait.errors import ExternalError, UserError, closest
from plait.generators import GENERATORS, Feed, feed
from plait.generators.slots import exact_rate
from plait.language.quantities import parse_rate
from plait.quantity_text import counted, rate_text
from plait.runtime.arrow_rows import json_lines
from plait.table_text import table_text

MAX_FILES = 100_000


class GeneratorOrFile(FileName):
    """The name of a generator or of an SQL file."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        names = [CompletionItem(name) for name in GENERATORS if name.startswith(incomplete)]
        return names or super().shell_complete(ctx, param, incomplete)


class Time(click.ParamType[int]):
    """A moment in UTC, in microseconds since 1970."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            moment = datetime.fromisoformat(str(value).strip())
        except ValueError:
            self.fail(f"`{value}` is no time such as '2026-01-31 12:00:00'", param, ctx)
        if moment.tzinfo is not None or moment.year < 1970:
            self.fail("times are in UTC, without a zone, from 1970 on", param, ctx)
        return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)


@dataclass(frozen=True)
class Files:
    """How rows become files."""

    format: str
    every_us: int
    output: Path


@click.command("generate")
@click.argument("what", metavar="[NAME | FILE]", required=False, type=GeneratorOrFile())
@click.option("--list", "list_all", is_flag=True, help="Show all generators, with their rates and columns.")
@click.option("--from", "from_us", type=Time(), help="First moment, in UTC; of a file, the streams' `start`.")
@click.option("--to", "to_us", type=Time(), help="The moment to end before; of a file, the streams' `end`.")
@click.option("--rate", type=Quantity(parse_rate), help="Rows, such as 500 or '30/min'.")
@click.option("--seed", type=click.IntRange(min=0), help="Other rows for each.  [default: 0]")
@click.option("--output", "-o", type=FileName(), help="A folder, in which each stream gets its own.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["parquet", "csv", "json"]),
    default="parquet",
    show_default=True,
    help="How rows are written.",
)
@click.option(
    "--file-every",
    type=DURATION_US,
    default="1 minute",
    show_default=True,
    help="How much time a file covers.",
)
def command(
    what: str | None,
    list_all: bool,
    from_us: int | None,
    to_us: int | None,
    rate: float | None,
    seed: int | None,
    output: str | None,
    file_format: str,
    file_every: float,
) -> None:
    """Write made-up streams as files: the airline, the smart plugs, the auctions.

    NAME is a generator; FILE is an SQL file, of which all streams with `connector = 'generator'` are written.
    The same arguments give the same rows, and the rows of a stream that reads them live are these.

    \b
    Examples:
      plait generate --list
      plait generate airline.flights --from '2026-03-02 06:00' --to '2026-03-02 06:30' --output made
      plait generate examples/airline_live.sql --format csv --file-every '10 seconds' --output made
    """
    if list_all:
        write_result(_listed(), None)
        return
    if what is None or output is None:
        raise UserError(
            "usage",
            f"{'what to generate' if what is None else 'where to'} is not said",
            hint="plait generate NAME --from TIME --to TIME --output DIR\n`plait generate --list` shows all",
        )
    files = Files(file_format, int(file_every), Path(output))
    feeds = {
        name: _settled(name, declared, from_us, to_us, rate, seed) for name, declared in _feeds(what).items()
    }
    for name, each in feeds.items():
        _check(files, name, each)
    for name, each in feeds.items():
        with progress(f"generating {name}"):
            rows, count = _write(files, name, each)
        click.echo(f"{files.output / name}: {counted(rows, 'row')} in {counted(count, 'file')}", err=True)


def _listed() -> str:
    rows = [
        [
            generator.name,
            rate_text(generator.default_rate_rows_per_s),
            ", ".join(f"{column.name} {column.type}" for column in generator.columns),
            generator.documentation,
        ]
        for generator in GENERATORS.values()
    ]
    return table_text(["generator", "rate", "columns", "what it is"], rows, width=terminal_width(None))


def _feeds(what: str) -> Mapping[str, Feed]:
    """What is to be written, by the name of its folder."""
    if what in GENERATORS:
        generator = GENERATORS[what]
        return {
            what.split(".")[1]: Feed(generator, 0, generator.default_rate_rows_per_s, None, None),
        }
    if not what.endswith(".sql") and not Path(what).exists():
        raise UserError(
            "unknown-generator",
            f"there is no generator and no file {what}",
            hint="\n".join(filter(None, (closest(what, GENERATORS), "`plait generate --list` shows all"))),
        )
    with open_session((what,)) as session:
        streams = session.workload.catalog.streams.values()
        found = {stream.name: feed(stream) for stream in streams if stream.connector == "generator"}
    if not found:
        raise UserError(
            "no-generators",
            f"{what} has no stream from a generator",
            hint="declare one WITH (connector = 'generator', generator = 'airline.flights')",
        )
    return found


def _settled(
    name: str, declared: Feed, from_us: int | None, to_us: int | None, rate: float | None, seed: int | None
) -> Feed:
    """What is said on the command line goes before what is declared."""
    settled = replace(
        declared,
        start_us=declared.start_us if from_us is None else from_us,
        end_us=declared.end_us if to_us is None else to_us,
        rate_rows_per_s=declared.rate_rows_per_s if rate is None else rate,
        seed=declared.seed if seed is None else seed,
    )
    if settled.start_us is None or settled.end_us is None:
        missing = "--from" if settled.start_us is None else "--to"
        raise UserError(
            "generated-interval",
            f"it is not said when `{name}` {'begins' if missing == '--from' else 'ends'}",
            hint=f"add {missing} '2026-01-31 12:00:00'",
        )
    if settled.start_us >= settled.end_us:
        raise UserError(
            "generated-interval", f"`{name}` ends before it begins", hint="give --to a later time"
        )
    exact_rate(settled.rate_rows_per_s)
    return settled


def _check(files: Files, name: str, source: Feed) -> None:
    """Refuse what cannot be written before anything is."""
    if sum(1 for _ in islice(_intervals(files, source), MAX_FILES + 1)) > MAX_FILES:
        raise UserError(
            "too-many-files",
            f"`{name}` would be more than {MAX_FILES:,} files",
            hint="let each of them cover more time, for example --file-every '1 hour'",
        )
    folder = files.output / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        used = any(not file.name.startswith(("_", ".")) for file in folder.iterdir())
    except OSError as error:
        raise ExternalError("output", f"cannot write {folder}: {error.strerror}") from None
    if used:
        raise UserError(
            "output-folder",
            f"there are files in {folder} already, and rows would be mixed up with theirs",
            hint="name a folder that is empty, or not there yet",
        )


def _intervals(files: Files, source: Feed) -> Iterator[tuple[int, int]]:
    assert source.start_us is not None
    assert source.end_us is not None
    start_us = source.start_us
    while start_us < source.end_us:
        end_us = min(source.end_us, (start_us // files.every_us + 1) * files.every_us)
        yield start_us, end_us
        start_us = end_us


def _write(files: Files, name: str, source: Feed) -> tuple[int, int]:
    """The numbers of rows and files. An interval without rows gives no file."""
    rows = count = 0
    for start_us, end_us in _intervals(files, source):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=start_us)
        target = files.output / name / f"{moment:%Y%m%dT%H%M%S.%f}.{files.format}"
        written = _write_file(target, files.format, source.generator.schema, source.parts(start_us, end_us))
        rows, count = rows + written, count + (1 if written else 0)
    return rows, count


def _write_file(target: Path, file_format: str, schema: pa.Schema, parts: Iterator[pa.RecordBatch]) -> int:
    first = next(parts, None)
    if first is None:
        return 0
    with written_atomically(target) as file:
        return _WRITERS[file_format](file, schema, chain([first], parts))


def _write_parquet(file: IO[bytes], schema: pa.Schema, parts: Iterator[pa.RecordBatch]) -> int:
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        return sum(writer.write_batch(part) or part.num_rows for part in parts)


def _write_csv(file: IO[bytes], schema: pa.Schema, parts: Iterator[pa.RecordBatch]) -> int:
    options = pyarrow.csv.WriteOptions(quoting_style="needed")
    with pyarrow.csv.CSVWriter(file, schema, write_options=options) as writer:
        return sum(writer.write_batch(part) or part.num_rows for part in parts)


def _write_json(file: IO[bytes], _: pa.Schema, parts: Iterator[pa.RecordBatch]) -> int:
    rows = 0
    for part in parts:
        file.writelines(line.encode() for line in json_lines(pa.Table.from_batches([part])))
        rows += part.num_rows
    return rows


_WRITERS: dict[str, Callable[[IO[bytes], pa.Schema, Iterator[pa.RecordBatch]], int]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "json": _write_json,
}
