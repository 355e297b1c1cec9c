"""Streams made up from a seed and the time, for demonstrations, tests and benchmarks.

A generator is a pure function of seed, rate and time: whoever asks for an interval, whenever and however cut,
gets the same rows. So a run over generators can be replayed after a crash, and checked against the
definition afterwards, without anything having been stored.

| module | what it decides |
|---|---|
| `generator` | what a generator is, and how an interval becomes rows |
| `slots` | when row k happens, and the random numbers that belong to it |
| `arrow_columns` | numbers, choices and decimals as Arrow columns, without Python per row |
| `airline` | the operational system of an airline (hierarchical paper, Fig. 5) |
| `airline_queries` | the queries over it, in the paper's mix |
| `smart_plugs` | energy consumption of households (federation paper, §8.1) |
| `auctions` | an auction house, after Nexmark |
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from plait.generators import airline, auctions, smart_plugs
from plait.generators.generator import GeneratedColumn, Generator

__all__ = ["GENERATORS", "GeneratedColumn", "Generator"]

GENERATORS: Mapping[str, Generator] = MappingProxyType(
    {
        generator.name: generator
        for generator in (*airline.GENERATORS, *smart_plugs.GENERATORS, *auctions.GENERATORS)
    }
)
