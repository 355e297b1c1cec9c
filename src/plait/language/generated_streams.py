"""Whether a stream with `connector = 'generator'` is declared as its generator makes it.

A declaration names the columns that it wants, with the types they have, and the generator's event time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from plait.errors import PlaitError, UserError, closest
from plait.language.options import Option
from plait.language.statements import CreateStream

if TYPE_CHECKING:
    from plait.generators import Generator


def check_generated(statement: CreateStream, options: Mapping[str, Option]) -> Iterator[PlaitError]:
    """What does not fit the generator, if the stream comes from one."""
    if "generator" not in options:
        return
    # Here, because most workloads have no generators, and Arrow takes its time to load.
    from plait.generators import GENERATORS
    from plait.generators.slots import exact_rate

    named = options["generator"]
    generator = GENERATORS.get(str(named.value))
    if generator is None:
        yield UserError(
            "unknown-generator",
            f"there is no generator '{named.value}'",
            hint=closest(str(named.value), GENERATORS),
            span=named.span,
        )
        return
    yield from _check_columns(statement, generator)
    rate = options.get("rate")
    if rate is not None and isinstance(rate.value, float):
        try:
            exact_rate(rate.value)
        except UserError as error:
            yield error.at(rate.span)


def generated_rate(options: Mapping[str, Option]) -> float | None:
    """The rate at which a stream's generator makes rows if none is declared; None if it has no generator."""
    if "generator" not in options:
        return None
    from plait.generators import GENERATORS

    generator = GENERATORS.get(str(options["generator"].value))
    return None if generator is None else generator.default_rate_rows_per_s


def _check_columns(statement: CreateStream, generator: Generator) -> Iterator[PlaitError]:
    types = {column.name: column.type for column in generator.columns}
    for column in statement.columns:
        name = column.name.key
        if name not in types:
            yield UserError(
                "generated-column",
                f"the generator '{generator.name}' makes no column `{column.name.text}`",
                hint=closest(name, types),
                span=column.name.span,
            )
        elif column.storage or column.type != types[name]:
            yield UserError(
                "generated-column",
                f"`{column.name.text}` of the generator '{generator.name}' is {types[name]}",
                hint=f"declare it {types[name]}, and CAST in the queries",
                span=column.span,
            )
    event_time = statement.watermark.column
    if event_time.key in types and event_time.key != generator.event_time:
        yield UserError(
            "generated-column",
            f"the event time of the generator '{generator.name}' is `{generator.event_time}`",
            hint=f"write WATERMARK FOR {generator.event_time} AS …",
            span=event_time.span,
        )
