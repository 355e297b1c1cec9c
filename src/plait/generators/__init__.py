"""Streams made up from a seed and the time, for demonstrations, tests and benchmarks.

A generator is a pure function of seed, rate and time: whoever asks for an interval, whenever and however cut,
gets the same rows. So a run over generators can be replayed after a crash, and checked against the
definition afterwards, without anything having been stored.

| module | what it decides |
|---|---|
| `registry` | which generators there are |
| `generator` | what a generator is, and how an interval becomes rows |
| `feed` | a generator with the seed, rate, start and end of a declared stream |
| `slots` | when row k happens, and the random numbers that belong to it |
| `arrow_columns` | numbers, choices and decimals as Arrow columns, without Python per row |
| `airline` | the operational system of an airline (hierarchical paper, Fig. 5) |
| `airline_queries` | the queries over it, in the paper's mix |
| `smart_plugs` | energy consumption of households (federation paper, §8.1) |
| `auctions` | an auction house, after Nexmark |
"""

from __future__ import annotations

from plait.generators.feed import Feed, feed
from plait.generators.generator import GeneratedColumn, Generator
from plait.generators.registry import GENERATORS

__all__ = ["GENERATORS", "Feed", "GeneratedColumn", "Generator", "feed"]
