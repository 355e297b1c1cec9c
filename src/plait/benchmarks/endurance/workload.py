"""Streams that go on with the clock, and queries of all kinds over them.

There are two worlds that share no stream. Plugs report into Parquet files, one a second and stream, which
DuckDB reads; an auction house is made up by generators, which Spark reads. So both ways to read are there,
and two streaming queries from the beginning. Nobody looks at `persons` at first: queries over them, and over
auctions with them, begin streaming queries of their own.

Ranges are of a minute at most, so that what has to be kept does not grow after the first minutes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PLUGS = 1_000
HOUSES = 40
CODES = 9
DISTRICTS = 4
MOST_LOAD = 10_000
READINGS_PER_S, ALARMS_PER_S, VISITS_PER_S = 2_000, 50, 10
BIDS_PER_S, AUCTIONS_PER_S, PERSONS_PER_S = 920, 60, 20
ROWS_PER_S = READINGS_PER_S + ALARMS_PER_S + VISITS_PER_S + BIDS_PER_S + AUCTIONS_PER_S + PERSONS_PER_S

_SECOND_US = 1_000_000
# One row in so many is older than the second that it comes in, by up to so much.
_OUT_OF_ORDER = 16
_MOST_LAG_US = 3 * _SECOND_US


def streams_sql(folder: Path, start: datetime, end: datetime) -> str:
    def files(name: str, columns: str, rate: int) -> str:
        return (
            f"CREATE STREAM {name} (plug INT, {columns}, at TIMESTAMP, "
            "WATERMARK FOR at AS at - INTERVAL 5 SECONDS) WITH (connector = 'files', "
            f"path = '{folder / name}', format = 'parquet', rate = {rate}, distinct.plug = {PLUGS});\n"
        )

    def generated(name: str, columns: str, rate: int) -> str:
        return (
            f"CREATE STREAM {name} ({columns}, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 6 SECONDS) "
            f"WITH (connector = 'generator', generator = 'auctions.{name}', seed = 7, rate = {rate}, "
            f"start = '{start}', end = '{end}');\n"
        )

    return (
        files("readings", "house INT, load INT", READINGS_PER_S)
        + files("alarms", "code INT", ALARMS_PER_S)
        + files("visits", "worker STRING", VISITS_PER_S)
        + generated("bids", "auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING", BIDS_PER_S)
        + generated("auctions", "id BIGINT, seller BIGINT, category INT", AUCTIONS_PER_S)
        + generated("persons", "id BIGINT, name STRING, state STRING", PERSONS_PER_S)
        + "CREATE TABLE districts (house INT, district INT) "
        f"WITH (connector = 'files', path = '{folder / 'districts.parquet'}', format = 'parquet');\n"
    )


@dataclass(frozen=True)
class Declared:
    """A query to be added. The system may give it another name, if there was one of this name."""

    name: str
    select: str

    @property
    def sql(self) -> str:
        return f"CREATE CONTINUOUS QUERY {self.name} AS {self.select};"


class Queries:
    """Of all kinds, in turn, each with constants, windows or columns of its own."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._kinds: tuple[Callable[[], str], ...] = (
            self._of_a_plug,
            self._by_house,
            self._bids_above,
            self._alarmed,
            self._in_bounds,
            self._by_channel,
            self._answered,
            self._busy_plugs,
            self._early_bids,
            self._codes_of_a_house,
            self._some_plugs,
            self._last_prices,
            self._distinct_plugs,
            self._hot_auctions,
            self._visited,
            self._of_a_district,
            self._unsold,
            self._last_alarms,
            self._best_seconds,
            self._busiest_houses,
            self._above_usual,
            self._either,
            self._bids_by_category,
            self._one_plug_both,
        )
        # Of streams that nothing reads together in the beginning.
        self._strangers = (self._newcomers, self._sellers)
        self._number = 0

    def next(self, name: str | None = None, *, strange: bool = False) -> Declared:
        """One more, of that name, or of one that none had before."""
        kinds = self._strangers if strange else self._kinds
        select = kinds[self._number % len(kinds)]()
        self._number += 1
        return Declared(name or f"q{self._number:04d}", select)

    @property
    def kinds(self) -> int:
        return len(self._kinds)

    def _plug(self) -> int:
        return self._rng.randrange(PLUGS)

    def _house(self) -> int:
        return self._rng.randrange(HOUSES)

    def _ticks(self, slides: tuple[int, int] = (5, 20), most: int = 3) -> str:
        slide = self._rng.randint(*slides)
        return f"[RANGE {slide * self._rng.randint(1, most)} SECONDS SLIDE {slide} SECONDS]"

    # Plugs.

    def _of_a_plug(self) -> str:
        return f"SELECT at, load FROM readings WHERE plug = {self._plug()}"

    def _in_bounds(self) -> str:
        least = self._rng.randrange(MOST_LOAD)
        return f"SELECT plug, load FROM readings WHERE load BETWEEN {least} AND {least + 9}"

    def _some_plugs(self) -> str:
        plugs = ", ".join(str(self._plug()) for _ in range(3))
        least = self._rng.randrange(5_000, 9_000)
        return f"SELECT plug, load, at FROM readings WHERE plug IN ({plugs}) AND load > {least}"

    def _by_house(self) -> str:
        least = self._rng.randrange(MOST_LOAD // 2)
        shown = self._rng.choice(("min(load) AS least", "max(load) AS most", "sum(load) AS total"))
        return (
            f"SELECT window_end, house, count(*) AS n, {shown} FROM readings {self._ticks()} "
            f"WHERE load >= {least} GROUP BY house"
        )

    def _busy_plugs(self) -> str:
        slide = self._rng.randint(5, 20)
        least = self._rng.randint(13_000, 16_000) * slide
        return (
            f"SELECT window_end, plug, sum(load) AS total FROM readings [RANGE {slide} SECONDS] "
            f"GROUP BY plug HAVING sum(load) > {least}"
        )

    def _distinct_plugs(self) -> str:
        return (
            "SELECT window_end, house, count(DISTINCT plug) AS plugs "
            f"FROM readings [RANGE {self._rng.randint(5, 20)} SECONDS] "
            f"WHERE load > {self._rng.randrange(8_000, 9_900)} GROUP BY house"
        )

    def _alarmed(self) -> str:
        ranges = self._rng.randint(2, 10), self._rng.randint(2, 10)
        return (
            f"SELECT r.plug, r.load, a.code FROM readings r [RANGE {ranges[0]} SECONDS], "
            f"alarms a [RANGE {ranges[1]} SECONDS] WHERE r.plug = a.plug AND r.house = {self._house()}"
        )

    def _visited(self) -> str:
        return (
            f"SELECT r.load, a.code, v.worker FROM readings r [RANGE {self._rng.randint(2, 5)} SECONDS], "
            f"alarms a [RANGE {self._rng.randint(5, 10)} SECONDS], visits v [RANGE 20 SECONDS] "
            f"WHERE r.plug = a.plug AND a.plug = v.plug AND r.house = {self._house()}"
        )

    def _codes_of_a_house(self) -> str:
        slide = self._rng.randint(5, 10)
        return (
            "SELECT window_end, a.code, count(*) AS n, sum(r.load) AS total "
            f"FROM readings r [RANGE {slide} SECONDS SLIDE {slide} SECONDS] "
            f"JOIN alarms a [RANGE {2 * slide} SECONDS SLIDE {slide} SECONDS] ON r.plug = a.plug "
            f"WHERE r.house = {self._house()} GROUP BY a.code"
        )

    def _answered(self) -> str:
        ranges = self._rng.randint(5, 30), self._rng.randint(5, 30)
        which = self._rng.choice(("", " AND v.plug IS NULL"))
        return (
            f"SELECT a.plug, a.at, v.worker FROM alarms a [RANGE {ranges[0]} SECONDS] "
            f"LEFT JOIN visits v [RANGE {ranges[1]} SECONDS] ON a.plug = v.plug "
            f"WHERE a.code = {self._rng.randrange(CODES)}{which}"
        )

    def _either(self) -> str:
        window = f"[RANGE {self._rng.randint(5, 20)} SECONDS]"
        code = self._rng.randrange(CODES)
        return (
            "SELECT window_end, a.plug AS alarmed, a.n, v.plug AS visited, v.m "
            f"FROM (SELECT plug, count(*) AS n FROM alarms {window} WHERE code = {code} "
            f"GROUP BY plug) a FULL JOIN (SELECT plug, count(*) AS m FROM visits {window} GROUP BY plug) v "
            "ON a.plug = v.plug"
        )

    def _last_alarms(self) -> str:
        if self._rng.random() < 0.5:
            rows = self._rng.randint(20, 200)
            return (
                f"SELECT window_end, count(*) AS n, min(plug) AS first FROM alarms [ROWS {rows} SLIDE {rows}]"
            )
        return (
            "SELECT window_end, house, max(load) AS most "
            f"FROM readings [PARTITION BY house ROWS 1000 SLIDE {self._rng.randint(500, 1_000)}] "
            "GROUP BY house"
        )

    def _best_seconds(self) -> str:
        return (
            "SELECT window_end, max(total) AS most FROM "
            "(SELECT house, sum(load) AS total FROM readings [RANGE 1 SECOND] GROUP BY house) "
            f"AS each_second [RANGE {self._rng.randint(5, 20)} SECONDS]"
        )

    def _busiest_houses(self) -> str:
        return (
            f"SELECT window_end, house, sum(load) AS total FROM readings {self._ticks()} GROUP BY house "
            f"ORDER BY total DESC, house LIMIT {self._rng.randint(1, 5)}"
        )

    def _above_usual(self) -> str:
        slide = self._rng.randint(5, 20)
        window = f"[RANGE {slide} SECONDS SLIDE {slide} SECONDS]"
        house = self._house()
        return (
            f"SELECT r.plug, window_end, count(*) AS n FROM readings r {window} "
            f"JOIN (SELECT plug, max(load) AS most FROM readings {window} WHERE house = {house} "
            "GROUP BY plug) AS top ON r.plug = top.plug "
            f"WHERE r.house = {house} AND r.load * 10 > 9 * top.most GROUP BY r.plug"
        )

    def _one_plug_both(self) -> str:
        plug = self._plug()
        return (
            f"SELECT 'load' AS what, load AS value, at FROM readings WHERE plug = {plug} "
            f"UNION ALL SELECT 'alarm', code, at FROM alarms WHERE plug = {plug}"
        )

    def _of_a_district(self) -> str:
        return (
            "SELECT r.plug, r.load, d.district FROM readings r JOIN districts d ON r.house = d.house "
            f"WHERE d.district = {self._rng.randrange(DISTRICTS)} AND r.load > {MOST_LOAD - 20}"
        )

    # Auctions.

    def _bids_above(self) -> str:
        channel = self._rng.choice(("web", "app", "desk"))
        return (
            "SELECT auction, price, at FROM bids "
            f"WHERE channel = '{channel}' AND price >= {self._rng.randint(170, 200)}"
        )

    def _by_channel(self) -> str:
        shown = self._rng.choice(
            ("max(price) AS highest", "sum(price) AS total", "count(DISTINCT bidder) AS bidders")
        )
        return (
            f"SELECT window_end, channel, count(*) AS n, {shown} FROM bids {self._ticks()} GROUP BY channel"
        )

    def _early_bids(self) -> str:
        return (
            f"SELECT a.id, b.price FROM auctions a [RANGE {self._rng.randint(5, 30)} SECONDS], "
            f"bids b [RANGE 1 SECOND] WHERE a.id = b.auction AND a.category = {self._category()} "
            f"AND b.price >= {self._rng.randint(100, 150)}"
        )

    def _hot_auctions(self) -> str:
        return (
            f"SELECT window_end, auction, count(*) AS bids FROM bids {self._ticks()} GROUP BY auction "
            f"ORDER BY bids DESC, auction LIMIT {self._rng.randint(1, 5)}"
        )

    def _unsold(self) -> str:
        return (
            f"SELECT a.id, a.at FROM auctions a [RANGE {self._rng.randint(5, 30)} SECONDS] "
            "LEFT JOIN bids b [RANGE 1 SECOND] ON a.id = b.auction "
            f"WHERE b.auction IS NULL AND a.category = {self._category()}"
        )

    def _last_prices(self) -> str:
        rows = self._rng.randint(200, 1_000)
        return f"SELECT window_end, max(price) AS highest, sum(price) AS total FROM bids [ROWS {rows}]"

    def _bids_by_category(self) -> str:
        slide = self._rng.randint(5, 10)
        return (
            "SELECT window_end, a.category, count(*) AS n, max(b.price) AS highest "
            f"FROM auctions a [RANGE {3 * slide} SECONDS SLIDE {slide} SECONDS] "
            f"JOIN bids b [RANGE {slide} SECONDS SLIDE {slide} SECONDS] ON a.id = b.auction "
            "GROUP BY a.category"
        )

    def _newcomers(self) -> str:
        state = self._rng.choice(("OR", "ID", "CA", "WA", "NY", "TX"))
        return f"SELECT id, name, at FROM persons WHERE state = '{state}'"

    def _sellers(self) -> str:
        return (
            "SELECT a.id, p.name FROM auctions a [RANGE 1 SECOND], persons p [RANGE 1 MINUTE] "
            f"WHERE a.seller = p.id AND a.category = {self._category()}"
        )

    def _category(self) -> int:
        return 10 + self._rng.randrange(5)


class Feeder:
    """Writes the plugs' files by the clock, for each second of event time one a stream, when it is over."""

    def __init__(self, folder: Path, start: datetime, end: datetime) -> None:
        self._folder = folder
        self._start_us, self._end_us = _microseconds(start), _microseconds(end)
        self._ended = Event()
        for name in ("readings", "alarms", "visits"):
            (folder / name).mkdir()
        houses = np.arange(HOUSES, dtype=np.int32)
        pq.write_table(
            pa.table({"house": houses, "district": houses % DISTRICTS}), folder / "districts.parquet"
        )
        self._thread = Thread(target=self._go_on, name="feeder", daemon=True)

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _go_on(self) -> None:
        for second_us in range(self._start_us, self._end_us, _SECOND_US):
            ahead_us = second_us + _SECOND_US - _microseconds(datetime.now(UTC).replace(tzinfo=None))
            if self._ended.wait(max(0.0, ahead_us / 1e6)):
                return
            self._write(second_us)

    def _write(self, second_us: int) -> None:
        rng = np.random.default_rng(second_us)

        def below(most: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
            return rng.integers(0, most, count, dtype=np.int32)

        plugs = below(PLUGS, READINGS_PER_S)
        workers = pa.array(["ann", "bob", "cid", "dan"]).take(pa.array(below(4, VISITS_PER_S)))
        streams = {
            "visits": {"plug": below(PLUGS, VISITS_PER_S), "worker": workers},
            "alarms": {"plug": below(PLUGS, ALARMS_PER_S), "code": below(CODES, ALARMS_PER_S)},
            "readings": {"plug": plugs, "house": plugs % HOUSES, "load": below(MOST_LOAD, READINGS_PER_S)},
        }
        for name, columns in streams.items():
            at = _times(second_us, len(columns["plug"]), rng)
            draft = self._folder / name / f"_{second_us}.parquet"
            pq.write_table(pa.table({**columns, "at": at}), draft)
            draft.rename(draft.with_name(draft.name[1:]))


def _times(second_us: int, count: int, rng: np.random.Generator) -> pa.Array:
    us = second_us + np.sort(rng.integers(0, _SECOND_US, count))
    late = rng.integers(0, _OUT_OF_ORDER, count) == 0
    return pa.array(us - late * rng.integers(0, _MOST_LAG_US, count), pa.timestamp("us", "UTC"))


def _microseconds(moment: datetime) -> int:
    """Of a time in UTC, since 1970."""
    return round(moment.replace(tzinfo=UTC).timestamp() * _SECOND_US)
