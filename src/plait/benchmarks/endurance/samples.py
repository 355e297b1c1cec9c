"""What a system takes, looked at every five seconds, and whether that stays as it is.

Memory, open files and threads begin anew with each life, so lives are compared with lives: of each the last
minute counts, before it was killed, and the lives fall into thirds. The first is for warming up; steady means
that the last is not above the second by more than `STEADY`, in the mean. A life that was cut short at its
start says nothing and is left out.

Files of the state folder are a saw-tooth: Spark gathers the names of files that it has read every hundred
batches, some minutes apart. At which height a life ends is chance, so of these its mean counts.

What leaks with the time that a process lives is the same at the end of each life, so lives are also looked
at by themselves: memory of the last minute over that of the second one after the first batch, by which time
Java's heap and the database's buffers have grown to what they need. Of all lives it is the median, as a life
that begins with much to catch up on may get its heap later. It was 1.00 to 1.05 in lives of five minutes with
some 1,700 MB, 1.04 in the middle, so `STEADY_WITHIN` is 1.06: 20 MB a minute on top of that, 100 MB in a
life, are found.

Of a minute it is the median: a process that Java has just forked has all of Java's memory for a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import mean, median
from threading import Event, Thread
from time import monotonic

from plait.benchmarks.endurance.system import RunningSystem
from plait.benchmarks.machine import files_below, open_files, processes_below
from plait.benchmarks.report import Claim, Report
from plait.errors import PlaitError
from plait.picture.chart import Chart, Series
from plait.runtime.exchange import BESIDE

SAMPLE_EVERY_S = 5.0
LAST_SAMPLES = 12
STEADY = 1.15
STEADY_WITHIN = 1.06


@dataclass(frozen=True)
class Sample:
    """`batch_s` and `lag_s` are of the fragment that takes longest and of the stream that is furthest behind;
    they are not there while the system does not answer."""

    life: int
    second: float
    python_mb: float
    java_mb: float
    open_files: int
    threads: int
    database_mb: float
    checkpoints_mb: float
    journals_mb: float
    statistics_mb: float
    manifest_mb: float
    other_state_mb: float
    state_files: int
    result_files: int
    results_mb: float
    batch_s: float | None
    lag_s: float | None

    @property
    def memory_mb(self) -> float:
        return self.python_mb + self.java_mb

    @property
    def state_mb(self) -> float:
        return (
            self.database_mb
            + self.checkpoints_mb
            + self.journals_mb
            + self.statistics_mb
            + self.manifest_mb
            + self.other_state_mb
        )


class Sampler:
    """Looks at a system, in the background, until it is left."""

    def __init__(self, system: RunningSystem) -> None:
        self.samples: list[Sample] = []
        self._system = system
        self._began = monotonic()
        self._ended = Event()
        self._thread = Thread(target=self._go_on, name="sampler", daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _go_on(self) -> None:
        while not self._ended.wait(SAMPLE_EVERY_S):
            life, pid = self._system.lives, self._system.pid
            if pid is None:
                continue
            batch_s, lag_s = self._load()
            sample = _sample(life, monotonic() - self._began, pid, self._system, batch_s, lag_s)
            if self._system.pid == pid:  # else it was killed meanwhile
                self.samples.append(sample)

    def _load(self) -> tuple[float | None, float | None]:
        with suppress(PlaitError):  # it starts, or was just killed
            load = self._system.attached.statistics()
            batches = [each.batch_seconds for each in load.fragments if each.batch_seconds is not None]
            behind = [each.behind_seconds for each in load.streams if each.behind_seconds is not None]
            return max(batches, default=None), max(behind, default=None)
        return None, None


def _sample(
    life: int, second: float, pid: int, system: RunningSystem, batch_s: float | None, lag_s: float | None
) -> Sample:
    processes = processes_below(pid)
    java_mb = sum(use.memory_mb for use in processes.values() if use.program == "java")
    parts = dict.fromkeys(_PARTS, 0)
    state_files = 0
    for path, size in files_below(system.state):
        if BESIDE not in path.parts:  # there are results, while files of theirs are merged
            parts[_part(path)] += size
            state_files += 1
    results = [size for _, size in files_below(system.results)]
    return Sample(
        life=life,
        second=second,
        python_mb=sum(use.memory_mb for use in processes.values()) - java_mb,
        java_mb=java_mb,
        open_files=sum(map(open_files, processes)),
        threads=sum(use.threads for use in processes.values()),
        **{f"{part}_mb": size / 1e6 for part, size in parts.items()},
        state_files=state_files,
        result_files=len(results),
        results_mb=sum(results) / 1e6,
        batch_s=batch_s,
        lag_s=lag_s,
    )


_PARTS = ("database", "checkpoints", "journals", "statistics", "manifest", "other_state")


def _part(path: Path) -> str:
    """What of the state folder a file is.

    >>> [_part(Path(name)) for name in ("state.duckdb.wal", "checkpoint/offsets/7", "journal.sqlite", "lock")]
    ['database', 'checkpoints', 'journals', 'other_state']
    """
    if path.name.startswith("state.duckdb"):
        return "database"
    if "checkpoint" in path.parts:
        return "checkpoints"
    if path.name.startswith("journal.sqlite"):
        return "journals"
    if path.name.startswith("statistics.sqlite"):
        return "statistics"
    return "manifest" if path.name in ("plait-state.json", "results.json") else "other_state"


# What has to be steady, in words.
_STEADY_WORDS = {
    "memory_mb": "memory of Python and Java does not grow",
    "state_mb": "the state folder does not grow",
    "state_files": "the files of the state folder do not become more",
    "open_files": "open files do not become more",
    "threads": "threads do not become more",
}


def describe(samples: Sequence[Sample], report: Report) -> None:
    """Figures of all that was sampled, claims about what has to be steady, and charts."""
    lives = whole_lives(samples)
    names = [each.name for each in fields(Sample) if each.name not in ("life", "second", "batch_s", "lag_s")]
    for name in ("memory_mb", "state_mb", *names):
        of_life = _on_average if name == "state_files" else _in_the_end
        second, last = _thirds([of_life(life, name) for life in lives])
        report.figures |= {
            f"{name}_second_third": round(second, 3),
            f"{name}_last_third": round(last, 3),
            f"{name}_last_over_second_third": round(last / second, 3) if second else 0.0,
        }
        # In the few minutes of a quick run, windows and Java's heap are still filling.
        if name in _STEADY_WORDS and not report.quick:
            holds = last <= STEADY * second
            report.claims.append(
                Claim(
                    _STEADY_WORDS[name],
                    source="goal",
                    against=STEADY,
                    ours=round(last / second, 3),
                    holds=holds,
                    why_not="" if holds else f"from {second:,.1f} to {last:,.1f}",
                )
            )
    _within_lives(lives, report)
    _times(lives, report)
    _draw(samples, report)


def whole_lives(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Samples by life, of those that lasted at least half as long as the longest."""
    lives = [[s for s in samples if s.life == life] for life in sorted({s.life for s in samples})]
    longest = max(len(life) for life in lives)
    return [life for life in lives if 2 * len(life) >= longest]


def _in_the_end(life: Sequence[Sample], name: str) -> float:
    values: list[float] = [getattr(sample, name) for sample in life[-LAST_SAMPLES:]]
    return median(values)


def _on_average(life: Sequence[Sample], name: str) -> float:
    values: list[float] = [getattr(sample, name) for sample in life]
    return mean(values)


def _within_lives(lives: Sequence[Sequence[Sample]], report: Report) -> None:
    grown = [ratio for life in lives if (ratio := _grown(life)) is not None]
    ratio = median(grown) if grown else 0.0
    report.figures["memory_mb_last_over_second_minute"] = round(ratio, 3)
    if report.quick:
        return
    holds = bool(grown) and ratio <= STEADY_WITHIN
    why_not = f"of {len(grown)} lives: {', '.join(f'{each:.3f}' for each in grown)}"
    report.claims.append(
        Claim(
            "memory does not grow while a life lasts",
            source="goal",
            against=STEADY_WITHIN,
            ours=round(ratio, 3),
            holds=holds,
            why_not="" if holds else why_not,
        )
    )


def _grown(life: Sequence[Sample]) -> float | None:
    """Memory of the last minute over that of the second after the first batch, if that was long before."""
    begin = next((k for k, sample in enumerate(life) if sample.batch_s is not None), len(life))
    second_minute = life[begin + LAST_SAMPLES : begin + 2 * LAST_SAMPLES]
    if len(life) < begin + 3 * LAST_SAMPLES:
        return None
    return _in_the_end(life, "memory_mb") / median(sample.memory_mb for sample in second_minute)


def _times(lives: Sequence[Sequence[Sample]], report: Report) -> None:
    batches = [[s.batch_s for s in life if s.batch_s is not None] for life in lives]
    second, last = _thirds([median(life) for life in batches if life] or [0.0])
    lags = [s.lag_s for life in lives for s in life if s.lag_s is not None]
    at_ends = [next((s.lag_s for s in reversed(life) if s.lag_s is not None), 0.0) for life in lives]
    report.figures |= {
        "batch_s_median_second_third": round(second, 3),
        "batch_s_median_last_third": round(last, 3),
        "lag_s_median": round(median(lags or [0.0]), 1),
        "lag_s_max": round(max(lags, default=0.0), 1),
        "lag_s_before_kills_max": round(max(at_ends), 1),
    }


def _thirds(values: Sequence[float]) -> tuple[float, float]:
    """The means of the second and of the last third.

    >>> _thirds([9, 2, 4, 5, 5, 5])
    (4.5, 5)
    """
    third = max(1, len(values) // 3)
    return mean(values[third : 2 * third] or values), mean(values[-third:])


def _draw(samples: Sequence[Sample], report: Report) -> None:
    def line(name: str, value: Callable[[Sample], float]) -> Series:
        return Series(name, tuple((sample.second / 60, value(sample)) for sample in samples))

    memory = (line("Python", lambda s: s.python_mb), line("Java", lambda s: s.java_mb))
    report.charts["memory"] = Chart("Memory, killed again and again", "minutes", "MB", memory)
    report.charts["state"] = Chart("The state folder", "minutes", "MB", tuple(_state_lines(line)))


def _state_lines(line: Callable[[str, Callable[[Sample], float]], Series]) -> Iterator[Series]:
    yield line("all", lambda s: s.state_mb)
    yield line("databases", lambda s: s.database_mb)
    yield line("Spark's checkpoints", lambda s: s.checkpoints_mb)
    yield line("journals", lambda s: s.journals_mb)
    yield line("statistics", lambda s: s.statistics_mb)
