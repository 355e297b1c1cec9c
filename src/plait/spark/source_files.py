"""`connector = 'files'`: Parquet, CSV and JSON files, read by Spark as engines/stored_files.py reads them.

- Parquet: Spark's reader matches columns by name, whatever the case, and refuses a stored type that is wider
  than declared. A column that a file lacks it would fill with NULLs; `FileChecks` finds that before.
- CSV: Spark's reader goes by position. The first line of the first file gives the order, and Spark refuses a
  file whose first line is another. Everything is read as text and then held against its declaration.
- JSON: lines of text, each parsed once into a VARIANT, which keeps numbers as they are written. The line
  stands in brackets for that: what follows an object on its line makes it malformed instead of being ignored.

A folder's own files are read, not those of folders in it; names with a leading `_` or `.` are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from pyarrow import ArrowException, parquet
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructField, StructType

from plait.catalog import Stream
from plait.engines import stored_files
from plait.engines.data_errors import described, option, shown, unreadable
from plait.engines.duckdb import Database
from plait.errors import UserError
from plait.expressions.spark import quoted, type_to_spark
from plait.expressions.types import TIMESTAMP, Kind
from plait.machine import memory_shares
from plait.spark import records
from plait.spark.file_paths import literal_path, pattern_of_file

# Stands for an empty field while CSV is read, so that "" can be told from it. No text has it.
_NULL = "\ue000NULL\ue001"
_UNREADABLE = "\ue000unreadable"
# In March 1973. A lesser number comes from a file whose timestamps are in another unit than the first file's.
_LEAST_NANOSECONDS = 10**17
# Spark leaves out files that are older than this, compared with the newest: none shall be.
_MAX_FILE_AGE = "100000d"
# Several queries come to a file, one soon after the other.
_FILES_KNOWN = 1000


def read_files(session: SparkSession, stream: Stream) -> DataFrame:
    """The records of the stream's files: a streaming frame as records.py says."""
    reader = _reader(session, stream)
    match option(stream, "format").lower():
        case "parquet":
            return _parquet(reader, stream)
        case "csv":
            return _csv(reader, stream)
        case _:
            return _json(reader, stream)


def list_files(session: SparkSession, stream: Stream) -> DataFrame:
    """The stream's files, and those of folders in its folder, as they come: a streaming frame that nobody
    reads."""
    return _placed(_reader(session, stream).format("text").schema("value STRING"), stream)


def _reader(session: SparkSession, stream: Stream) -> DataStreamReader:
    reader = session.readStream.option("maxFileAge", _MAX_FILE_AGE)
    if "files_per_batch" in stream.options:
        return reader.option("maxFilesPerTrigger", option(stream, "files_per_batch"))
    # What has piled up must not be more than a batch can hold.
    return reader.option("maxBytesPerTrigger", memory_shares().files_bytes)


class FileChecks:
    """Holds files against their stream's declaration, each once: of every stream the last are remembered, or
    as many as are asked about at once. Queries ask from threads of their own."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._fitting: dict[str, dict[Path, None]] = {}

    def check_stream(self, stream: Stream) -> None:
        """A UserError if the path is not there, or if the files in it do not have the declared columns."""
        files = _files(stream)
        self.check_columns(stream, files)
        if option(stream, "format").lower() == "csv" and stream.options.get("header", True) and files:
            _check_headers(stream, files)

    def check_columns(self, stream: Stream, files: Sequence[Path]) -> None:
        """A UserError if one of these files of the stream does not have the declared columns."""
        with self._lock:
            fitting = self._fitting.setdefault(stream.name, {})
            unknown = [file for file in files if file not in fitting]
            if not unknown:
                return
            with Database(threads=1) as database:
                for file in unknown:
                    stored_files.check_columns(database, stream, file)
                    fitting[file] = None
            for oldest in list(fitting)[: -max(_FILES_KNOWN, len(files))]:
                del fitting[oldest]


def json_records(frame: DataFrame, stream: Stream, line: Column) -> DataFrame:
    """The records of objects in JSON, each a text."""
    # Being random keeps the optimizer from parsing the line once for each column and each filter.
    once = F.spark_partition_id() >= 0
    parsed = frame.select(
        line.alias("line"),
        F.when(once, F.try_parse_json(F.concat(F.lit("["), line, F.lit("]")))).alias("parsed"),
    )
    variant = F.col("parsed")
    texts = [F.variant_get(variant, f"$[0]{_member(column.name)}", "string") for column in stream.columns]
    is_one_object = (
        F.startswith(F.ltrim("line"), F.lit("{"))
        & variant.isNotNull()
        & F.variant_get(variant, "$[1]", "variant").isNull()
    )
    problem = F.coalesce(
        F.when(~F.is_valid_utf8("line"), F.lit("the line is no UTF-8")),
        F.when(~is_one_object, F.lit("the line is no JSON object")),
        *(
            _too_large(column.name, variant, text)
            for column, text in zip(stream.columns, texts, strict=True)
            if column.type.kind is Kind.DOUBLE
        ),
    )
    return records.of_texts(parsed, stream, texts, problem, F.make_valid_utf8("line"))


def _too_large(name: str, parsed: Column, text: Column) -> Column:
    """Infinity has to be written as a text: a number that reads so was too large."""
    member = F.variant_get(parsed, f"$[0]{_member(name)}", "variant")
    is_number = F.schema_of_variant(member) != F.lit("STRING")
    return F.when(
        text.isin("Infinity", "-Infinity") & is_number,
        F.lit(f"column `{name}` holds a number that is too large"),
    )


def _parquet(reader: DataStreamReader, stream: Stream) -> DataFrame:
    in_nanoseconds = _columns_in_nanoseconds(stream)
    types = {
        column.name: "BIGINT"
        if column.name in in_nanoseconds
        else column.storage or type_to_spark(column.type)
        for column in stream.columns
    }
    frame = _load(
        reader.format("parquet")
        .schema(", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items()))
        .options(datetimeRebaseMode="CORRECTED", int96RebaseMode="CORRECTED"),
        stream,
    )
    values = {name: _column(name) for name in types}
    problems = [F.lit(None).cast("string")]
    for name in in_nanoseconds:
        number = values[name]
        problems.append(
            F.when(
                F.abs(number) < _LEAST_NANOSECONDS,
                F.concat(
                    F.lit(f"column `{name}` holds "), number, F.lit(", which is no time in nanoseconds")
                ),
            )
        )
        values[name] = _nearest_microsecond(quoted(name))
    return records.of_values(frame, stream, list(values.values()), F.coalesce(*problems))


def _nearest_microsecond(nanoseconds: str) -> Column:
    """As DuckDB does it."""
    rest = f"pmod({nanoseconds}, 1000)"
    return F.expr(f"timestamp_micros(({nanoseconds} - {rest}) DIV 1000 + IF({rest} >= 500, 1, 0))")


def _columns_in_nanoseconds(stream: Stream) -> frozenset[str]:
    """Timestamps that are stored in nanoseconds, as pandas does it: Spark reads them as numbers only."""
    files = _files(stream)
    if not files:
        return frozenset()
    try:
        stored = {field.name.lower(): str(field.type) for field in parquet.read_schema(files[0])}
    except (OSError, ArrowException) as error:
        raise unreadable(stream, files[0], error) from None
    return frozenset(
        column.name
        for column in stream.columns
        if column.type == TIMESTAMP and stored.get(column.name.lower(), "").startswith("timestamp[ns")
    )


def _csv(reader: DataStreamReader, stream: Stream) -> DataFrame:
    has_header = bool(stream.options.get("header", True))
    names = _csv_names(stream, has_header)
    frame = _load(
        reader.format("csv")
        .schema(StructType([StructField(name, StringType()) for name in (*names, _UNREADABLE)]))
        .options(
            header=has_header,
            enforceSchema=False,
            columnPruning=False,
            multiLine=True,
            sep=str(stream.options.get("delimiter", ",")),
            escape='"',
            nullValue=_NULL,
            emptyValue="",
            mode="PERMISSIVE",
            columnNameOfCorruptRecord=_UNREADABLE,
        ),
        stream,
    )
    found = {name.strip().lower(): _column(name) for name in names}
    texts = [found[column.name.lower()] for column in stream.columns]
    problem = F.when(
        _column(_UNREADABLE).isNotNull(),
        F.lit(f"the line does not have {len(names)} values, as the first has"),
    )
    record = F.coalesce(_column(_UNREADABLE), F.to_csv(F.struct(*map(_column, names))))
    return records.of_texts(frame, stream, texts, problem, record)


def _json(reader: DataStreamReader, stream: Stream) -> DataFrame:
    lines = _load(reader.format("text").schema("value STRING"), stream)
    line = F.ltrim(F.col("value"), F.lit("\ufeff"))
    return json_records(lines.where(F.trim("value") != ""), stream, line)


def _placed(reader: DataStreamReader, stream: Stream) -> DataFrame:
    path = Path(option(stream, "path")).absolute()
    if path.is_file():
        return reader.load(pattern_of_file(path))
    # Without the lookup, Spark takes folders in the folder for partitions, or refuses them.
    return reader.option("recursiveFileLookup", True).load(literal_path(path))


def _load(reader: DataStreamReader, stream: Stream) -> DataFrame:
    frame = _placed(reader, stream)
    path = Path(option(stream, "path")).absolute()
    if path.is_file():
        return frame
    return frame.where(_is_file_of(path, frame.sparkSession))


def _is_file_of(folder: Path, session: SparkSession) -> Column:
    """Whether the record is of a file in the folder itself. What stands before the file's name is compared by
    its length: this is asked for every record, and patterns would take longer than all else about it."""
    jvm = session._jvm
    assert jvm is not None
    encoded = jvm.org.apache.hadoop.fs.Path(str(folder)).toUri().getRawPath().rstrip("/")
    file, name = F.col("_metadata.file_path"), F.col("_metadata.file_name")
    slashes = F.when(F.startswith(file, F.lit("file:///")), 2).otherwise(0)  # some write them, some do not
    before_name = F.octet_length(file) - F.octet_length(name) - slashes
    return before_name == len(f"file:{encoded}/".encode())


def _files(stream: Stream) -> list[Path]:
    """The files that are there by now."""
    try:
        return stored_files.data_files(stream)
    except UserError as error:
        if error.code == "no-files":  # they may come
            return []
        raise


def _csv_names(stream: Stream, has_header: bool) -> list[str]:
    """The columns of the files, in their order."""
    files = _files(stream) if has_header else []
    return stored_files.csv_header(stream, files[0]) if files else [c.name for c in stream.columns]


def _check_headers(stream: Stream, files: Sequence[Path]) -> None:
    first, *others = files
    expected = _folded(stored_files.csv_header(stream, first))
    if len(set(expected)) < len(expected):
        raise UserError(
            "stored-columns",
            f"two columns in the data of {described(stream)} have one name",
            detail=f"in {shown(stream, first)}",
        )
    for file in others:
        if _folded(stored_files.csv_header(stream, file)) != expected:
            raise UserError(
                "stored-columns",
                f"the CSV files of {described(stream)} do not all begin with the same line",
                detail=f"{shown(stream, file)} and {shown(stream, first)}",
                hint="to run, Spark needs the same columns in the same order in all of them",
            )


def _folded(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _member(name: str) -> str:
    return f"['{name}']" if '"' in name else f'["{name}"]'


def _column(name: str) -> Column:
    return F.col(quoted(name))
