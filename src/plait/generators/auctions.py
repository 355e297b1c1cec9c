"""An auction house: persons sign up, open auctions, place bids. After the Nexmark benchmark (Tucker et al.),
whose proportions are 1 person to 3 auctions to 46 bids.

A bid refers to an auction that was opened within the last minutes, and half of all bids go to a hot one, of
which there is one every ten seconds. Sellers and bidders signed up a few minutes before. To find such a
partner without looking at the other stream, ids are made of the minute and of the number within it: the
auction that was the newest at a moment is known from the moment and from the rate of auctions, which is taken
to be in Nexmark's proportion to the rate of bids. Where auctions come at a higher rate, some of them never
get a bid; where at a lower one, some bids have no auction.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa

from plait.expressions.types import BIGINT, INT, STRING, TIMESTAMP, decimal
from plait.generators.arrow_columns import bigints, decimals, ints, numbered, strings, timestamps
from plait.generators.generator import GeneratedColumn, Generator
from plait.generators.slots import SECOND_US, Flags, Integers, Slots, first_at

_PERSONS, _AUCTIONS, _BIDS = 1, 3, 46

_MINUTE_US = 60 * SECOND_US
# More than a minute can bring at the highest rate there is.
_IDS_PER_MINUTE = 100_000_000

_HOT_EVERY_US = 10 * SECOND_US
_MAX_AUCTION_AGE_US = 3 * _MINUTE_US
_MAX_SELLER_AGE_US = 2 * _MINUTE_US
_MAX_BIDDER_AGE_US = 5 * _MINUTE_US

_CATEGORIES = 5
_FIRST_CATEGORY = 10

_NAMES = ("Ada", "Edgar", "Grace", "Jim", "Barbara", "Tony")
_MAILBOXES = tuple(f"{name.lower()}@example.org" for name in _NAMES)
_STATES = ("OR", "ID", "CA", "WA", "NY", "TX")
_CHANNELS = (*["web"] * 5, *["app"] * 4, "desk")


def _own_ids(slots: Slots) -> Integers:
    """The minute, and which row of it."""
    minute = slots.times_us // _MINUTE_US
    if not len(slots):
        return minute
    first, last = int(minute[0]), int(minute[-1])
    starts = np.array(
        [first_at(slots.rate, number * _MINUTE_US) for number in range(first, last + 1)], dtype=np.int64
    )
    return minute * _IDS_PER_MINUTE + slots.numbers - starts[minute - first]


def _newest_ids(rate: Fraction, times_us: Integers) -> Integers:
    """The ids of what happened last before these times, in a stream of this rate."""
    minute, within_us = np.divmod(times_us, _MINUTE_US)
    # A float is exact enough: an id beside the right one is as good.
    return minute * _IDS_PER_MINUTE + (within_us * float(rate / SECOND_US)).astype(np.int64)


def _earlier(slots: Slots, column: str, max_age_us: int) -> Integers:
    """Times before the rows' slots, recent ones more often."""
    times_us: Integers = np.maximum(0, slots.times_us - slots.lower_below(column, max_age_us))
    return times_us


def _persons(slots: Slots, times_us: Integers) -> Sequence[pa.Array]:
    name = slots.below("name", len(_NAMES))
    return (
        bigints(_own_ids(slots)),
        strings(_NAMES, name),
        strings(_MAILBOXES, name, slots.one_in("no address", 9)),
        strings(_STATES, slots.below("state", len(_STATES))),
        timestamps(times_us),
    )


def _auctions(slots: Slots, times_us: Integers) -> Sequence[pa.Array]:
    persons = slots.rate * _PERSONS / _AUCTIONS
    return (
        bigints(_own_ids(slots)),
        numbered("lot ", slots.numbers),
        decimals(100 + slots.lower_below("initial bid", 4_900), 10, 2),
        bigints(_newest_ids(persons, _earlier(slots, "seller", _MAX_SELLER_AGE_US))),
        ints(_FIRST_CATEGORY + slots.lower_below("category", _CATEGORIES)),
        timestamps(times_us),
    )


def _bids(slots: Slots, times_us: Integers) -> Sequence[pa.Array]:
    opened_us = _earlier(slots, "auction", _MAX_AUCTION_AGE_US)
    hot: Flags = slots.one_in("hot", 2)
    opened_us = np.where(hot, opened_us // _HOT_EVERY_US * _HOT_EVERY_US, opened_us)
    auctions, persons = slots.rate * _AUCTIONS / _BIDS, slots.rate * _PERSONS / _BIDS
    return (
        bigints(_newest_ids(auctions, opened_us)),
        bigints(_newest_ids(persons, _earlier(slots, "bidder", _MAX_BIDDER_AGE_US))),
        decimals(100 + slots.lower_below("price", 20_000), 10, 2),
        strings(_CHANNELS, slots.below("channel", len(_CHANNELS)), slots.one_in("no channel", 50)),
        timestamps(times_us),
    )


GENERATORS = (
    Generator(
        "auctions.persons",
        "people signing up: 1 to 3 auctions to 46 bids",
        (
            GeneratedColumn("id", BIGINT),
            GeneratedColumn("name", STRING),
            GeneratedColumn("email", STRING),
            GeneratedColumn("state", STRING),
            GeneratedColumn("at", TIMESTAMP),
        ),
        "at",
        20.0 * _PERSONS,
        5 * SECOND_US,
        _persons,
    ),
    Generator(
        "auctions.auctions",
        "auctions opened by people who signed up before",
        (
            GeneratedColumn("id", BIGINT),
            GeneratedColumn("item", STRING),
            GeneratedColumn("initial_bid", decimal(10, 2)),
            GeneratedColumn("seller", BIGINT),
            GeneratedColumn("category", INT),
            GeneratedColumn("at", TIMESTAMP),
        ),
        "at",
        20.0 * _AUCTIONS,
        5 * SECOND_US,
        _auctions,
    ),
    Generator(
        "auctions.bids",
        "bids on auctions opened before, half of them on hot ones",
        (
            GeneratedColumn("auction", BIGINT),
            GeneratedColumn("bidder", BIGINT),
            GeneratedColumn("price", decimal(10, 2)),
            GeneratedColumn("channel", STRING),
            GeneratedColumn("at", TIMESTAMP),
        ),
        "at",
        20.0 * _BIDS,
        5 * SECOND_US,
        _bids,
    ),
)
