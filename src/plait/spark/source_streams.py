"""Streams whose rows come with types of Spark's: `connector = 'spark'`, and streaming frames given in Python.

Their columns are found by name, whatever its case, and have to fit their declaration before anything starts:
a type may be narrower than declared, never wider, so that no value is rounded or lost. With
`value_format = 'json'` each record is instead one object in the column `value`, as Kafka gives it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)
from pyspark.sql import types as t
from pyspark.sql.types import DataType

from plait.catalog import ColumnDefinition, Stream
from plait.engines.data_errors import described, option
from plait.errors import UserError, closest
from plait.expressions.spark import quoted, type_to_spark
from plait.expressions.types import INTEGER_BITS, INTEGER_DIGITS, Kind
from plait.spark import records
from plait.spark.failures import SPARK_ERRORS, explained
from plait.spark.source_files import json_records

# Formats that have to be told what their columns are. Others know, and may refuse to be told.
_TOLD_THEIR_COLUMNS = frozenset({"avro", "csv", "json", "orc", "parquet", "xml"})

_INTEGER_KINDS: dict[type[DataType], Kind] = {
    t.ByteType: Kind.TINYINT,
    t.ShortType: Kind.SMALLINT,
    t.IntegerType: Kind.INT,
    t.LongType: Kind.BIGINT,
}
_WATERMARK = "spark.watermarkDelayMs"


def read_from_spark(session: SparkSession, stream: Stream) -> DataFrame:
    """The records of anything that `readStream` reads."""
    format_ = option(stream, "format")
    reader = session.readStream.format(format_).options(**stream.spark_options)
    is_json = "value_format" in stream.options
    if format_.lower() in _TOLD_THEIR_COLUMNS and not is_json:
        reader = reader.schema(
            ", ".join(
                f"{quoted(column.name)} {column.storage or type_to_spark(column.type)}"
                for column in stream.columns
            )
        )
    try:
        frame = reader.load(option(stream, "path")) if "path" in stream.options else reader.load()
        columns = frame.schema
    except SPARK_ERRORS as error:
        raise explained(error, described(stream)) from error
    if not is_json:
        return _typed_records(frame, stream)
    value = next((field for field in columns if field.name.lower() == "value"), None)
    if value is None or not isinstance(value.dataType, t.StringType | t.BinaryType):
        raise UserError(
            "source-columns",
            f"{described(stream)} has `value_format`, but `{format_}` gives no text `value`",
            hint=f"it gives {', '.join(f'`{name}`' for name in frame.columns)}: leave out `value_format`",
        )
    return json_records(frame, stream, F.coalesce(F.col("value").cast("string"), F.lit("")))


def read_given(session: SparkSession, stream: Stream, frame: DataFrame) -> DataFrame:
    """The records of a streaming frame, in our session whichever it was made in."""
    if not isinstance(frame, DataFrame) or not hasattr(frame, "_jdf"):
        raise UserError(
            "no-frame",
            f"what was given for {described(stream)} is no DataFrame of this Spark",
            hint="give one that spark.readStream made",
        )
    if not frame.isStreaming:
        raise UserError(
            "not-streaming",
            f"the DataFrame given for {described(stream)} is not a streaming one",
            hint="make it with spark.readStream instead of spark.read",
        )
    if any(_WATERMARK in field.metadata for field in frame.schema):
        raise UserError(
            "watermark-twice",
            f"the DataFrame given for {described(stream)} has a watermark already",
            hint="leave out withWatermark: the delay is in the stream's declaration",
        )
    return _typed_records(_rehomed(frame, session), stream)


def _typed_records(frame: DataFrame, stream: Stream) -> DataFrame:
    return records.of_values(frame, stream, [_found(frame, stream, column) for column in stream.columns])


def _found(frame: DataFrame, stream: Stream, column: ColumnDefinition) -> Column:
    same = [field for field in frame.schema if field.name.lower() == column.name.lower()]
    if not same:
        raise UserError(
            "source-columns",
            f"column `{column.name}` of {described(stream)} is not in its source",
            hint=closest(column.name, frame.columns),
        )
    if len(same) > 1:
        raise UserError(
            "source-columns", f"column `{column.name}` of {described(stream)} is there twice in its source"
        )
    if not _fits(same[0].dataType, column):
        raise UserError(
            "source-type",
            f"column `{column.name}` of {described(stream)} is declared {column.storage or column.type}, "
            f"but its source gives {same[0].dataType.simpleString().upper()}",
            hint="declare that type, and CAST in the queries",
        )
    return F.col(quoted(same[0].name))


def _fits(given: DataType, column: ColumnDefinition) -> bool:
    """Whether every value of the given type is one of the declared type, unchanged."""
    declared = column.type
    integer = _INTEGER_KINDS.get(type(given))
    match declared.kind:
        case Kind.BOOLEAN:
            return isinstance(given, t.BooleanType)
        case Kind.STRING:
            return isinstance(given, t.StringType)
        case Kind.DATE:
            return isinstance(given, t.DateType)
        case Kind.TIMESTAMP:
            return isinstance(given, t.TimestampType | t.TimestampNTZType)
        case Kind.DOUBLE:
            is_double = isinstance(given, t.DoubleType) and column.storage.upper() != "FLOAT"
            return is_double or isinstance(given, t.FloatType)
        case Kind.DECIMAL:
            whole_digits = declared.precision - declared.scale
            if isinstance(given, t.DecimalType):
                return given.scale <= declared.scale and given.precision - given.scale <= whole_digits
            return integer is not None and INTEGER_DIGITS[integer] <= whole_digits
        case _:
            return integer is not None and INTEGER_BITS[integer] <= INTEGER_BITS[declared.kind]


def _rehomed(frame: DataFrame, session: SparkSession) -> DataFrame:
    """The frame's plan in our session, whose settings it is then run with. What it means was settled in the
    session that it comes from: analyzed there, it keeps that session's time zone and mode."""
    jvm = session._jvm
    assert jvm is not None
    plan = frame._jdf.queryExecution().analyzed()
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)
