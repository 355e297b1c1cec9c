"""Options that are quantities with a unit, written as in SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import click

from plait.language.quantities import QuantityError, parse_duration


@dataclass(frozen=True)
class Quantity(click.ParamType[float]):
    """What `read` makes of a text such as `60s` or `30/min`."""

    read: Callable[[str], float]
    name = "quantity"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return value
        try:
            return self.read(str(value))
        except QuantityError as error:
            self.fail(f"{error.message}: {error.hint}", param, ctx)


DURATION_US = Quantity(lambda text: parse_duration(text, positive=True))
DURATION_S = Quantity(lambda text: parse_duration(text, positive=True) / 1e6)
