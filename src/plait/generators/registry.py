"""Which generators there are, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from plait.generators import airline, auctions, smart_plugs
from plait.generators.generator import Generator

GENERATORS: Mapping[str, Generator] = MappingProxyType(
    {
        generator.name: generator
        for generator in (*airline.GENERATORS, *smart_plugs.GENERATORS, *auctions.GENERATORS)
    }
)
