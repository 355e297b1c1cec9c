"""Time cut into classes in which edges are independent: how thousands of edge rates are computed quickly.

Conditions on residues (`windows.residues`) are decided factor by factor until, in each **class** of times
that is left, every progression that still can have an edge there is a condition on one factor only. What
different factors cover is then independent, so the share of a class that is no edge is a product over
factors, and

    E = Σ over classes: share of the class × (1 − Π over factors: residues left / residues).

What has been decided upon is the core modulus K: each slide exceeds it by at most one factor. Residues of K
that no progression names are one class, so aligned windows, whose named residues are all 0, have few: 48
for all slides to 100. With two residues a slide there are 60 for all slides to 50. Decisions are taken
where they are needed, so not all classes have decided upon the same factors.

Which residues of a factor are covered in a class is a few bits of a **word**. A set of windows is a row of
words; the union of two sets is their bitwise or; and the processor counts how many residues are covered. A
factor of which more than 64 residues are named takes further words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.windows.edge_rate import US_PER_S
from plait.windows.edges import Progression
from plait.windows.residues import Condition, common_unit_us, conditions_of

WORD_BITS = 64

# Words of all progressions together: 160 MB. Where there would be more, exact rates are quicker.
MOST_WORDS = 20_000_000

# Unsigned integers, as short as all named residues of a factor fit into, if they fit.
Words = NDArray[np.unsignedinteger[Any]]
Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EdgeClasses:
    """The first word of every factor of every class, class by class; then further words of some factors.

    `further` has for the second, third … words of factors where they stand, and the factors they are of.
    Progression i covers `progression_masks` of `progression_words` from `progression_starts[i]` on.
    """

    class_rates_per_s: Numbers
    class_starts: Integers
    class_of_factor: Integers
    residues: Numbers
    further: tuple[tuple[slice, Integers], ...]
    factor_of_word: Integers
    progression_starts: Integers
    progression_words: Integers
    progression_masks: Words

    @property
    def words(self) -> int:
        return len(self.factor_of_word)

    def no_edges(self, rows: int) -> Words:
        return np.zeros((rows, self.words), dtype=self.progression_masks.dtype)

    def cover(self, row: Words, progression: int) -> None:
        """Write into a row what a progression covers."""
        own = slice(self.progression_starts[progression], self.progression_starts[progression + 1])
        row[self.progression_words[own]] |= self.progression_masks[own]

    def rates_per_s(self, rows: Words) -> Numbers:
        """Edges a second of each row, or of the one."""
        _, outside = self._left_and_outside(rows)
        rates: Numbers = (1.0 - outside) @ self.class_rates_per_s
        return rates

    def added_per_s(self, row: Words) -> Numbers:
        """For each progression: how many edges a second it has that the row has not."""
        left, outside = self._left_and_outside(row)
        # What one more residue of a factor adds, while others of it are as they are.
        worth = (self.class_rates_per_s * outside)[self.class_of_factor]
        np.divide(worth, left, out=worth, where=left > 0)
        if self.further:
            worth = worth[self.factor_of_word]
        new = np.bitwise_count(self.progression_masks & ~row[self.progression_words])
        added: Numbers = np.add.reduceat(new * worth[self.progression_words], self.progression_starts[:-1])
        return added

    def _left_and_outside(self, rows: Words) -> tuple[Numbers, Numbers]:
        """Residues of each factor that are not covered, and the share of each class that is no edge."""
        covered = np.bitwise_count(rows)
        left = self.residues - covered[..., : len(self.residues)]
        for place, factors in self.further:
            left[..., factors] -= covered[..., place]
        outside = np.multiply.reduceat(left / self.residues, self.class_starts, axis=-1)
        return left, outside


def edge_classes(progressions: Sequence[Progression]) -> EdgeClasses | None:
    """The classes that make these progressions independent; nothing if they take too many words."""
    decided = _decided(_Conditions.of(conditions_of(progressions)), MOST_WORDS // len(progressions))
    return None if decided is None else _laid_out(decided, US_PER_S / common_unit_us(progressions))


@dataclass(frozen=True, eq=False)
class _Conditions:
    """One a row, with a column for each factor: a power of it, 1 where the condition does not speak of it,
    and the residue modulo that power."""

    factors: Integers
    progressions: Integers
    powers: Integers
    residues: Integers

    @staticmethod
    def of(conditions: Sequence[Condition]) -> _Conditions:
        factors = sorted({factor for condition in conditions for factor, _, _ in condition})
        columns = {factor: column for column, factor in enumerate(factors)}
        powers = np.ones((len(conditions), len(factors)), dtype=np.int64)
        residues = np.zeros_like(powers)
        for row, condition in enumerate(conditions):
            for factor, power, residue in condition:
                powers[row, columns[factor]] = power
                residues[row, columns[factor]] = residue
        return _Conditions(np.array(factors, dtype=np.int64), np.arange(len(conditions)), powers, residues)

    def cases(self) -> Integers:
        """How many there are of each factor: the residues that are named, and all others as one."""
        named = [
            len(np.unique(residues[powers > 1] % factor))
            for factor, powers, residues in zip(self.factors, self.powers.T, self.residues.T, strict=True)
        ]
        return np.minimum(np.array(named, dtype=np.int64) + 1, self.factors)

    def deciding_column(self, cases: Integers) -> int | None:
        """The factor to decide upon: many conditions on several factors speak of it, and it has few cases.
        If there are no such conditions, one of which many residues would be told apart only because some
        are named modulo a low power and some modulo a high one; or none."""
        spoken_of = self.powers > 1
        entangled = spoken_of[spoken_of.sum(axis=1) > 1]
        if len(entangled):
            return int(np.argmax(entangled.sum(axis=0) / cases))
        greatest = self.powers.max(axis=0, initial=1)
        mixed = (spoken_of & (self.powers < greatest)).any(axis=0)
        if mixed.any():
            told_apart = np.minimum(greatest, np.where(spoken_of, greatest // self.powers, 0).sum(axis=0))
            crowded = np.flatnonzero(mixed & (told_apart > WORD_BITS))
            if len(crowded):
                return int(crowded[0])
        return None

    def by_residue(self, column: int) -> list[tuple[float, _Conditions]]:
        """What is left to ask of times with each residue modulo a factor, and the share of such times."""
        factor = int(self.factors[column])
        concerned = self.powers[:, column] > 1
        unconcerned = ~concerned
        digits = np.where(concerned, self.residues[:, column] % factor, -1)
        powers, residues = self.powers.copy(), self.residues.copy()
        powers[concerned, column] //= factor
        residues[concerned, column] //= factor
        cases = []
        named = np.unique(digits[concerned])
        for digit in named:
            rows = np.flatnonzero(unconcerned | (digits == digit))
            left = _Conditions(self.factors, self.progressions[rows], powers[rows], residues[rows])
            cases.append((1 / factor, left))
        if len(named) < factor and unconcerned.any():
            rows = np.flatnonzero(unconcerned)
            left = _Conditions(self.factors, self.progressions[rows], powers[rows], residues[rows])
            cases.append(((factor - len(named)) / factor, left))
        return cases


def _decided(conditions: _Conditions, most_words: int) -> list[tuple[float, _Conditions]] | None:
    """Classes with their shares, in each of which no condition is on several factors. Those that no
    condition can be met in are left out."""
    cases = conditions.cases()
    undecided, decided, words = [(1.0, conditions)], [], 0
    while undecided:
        share, left = undecided.pop()
        column = left.deciding_column(cases)
        if column is None:
            decided.append((share, left))
            words += int((left.powers > 1).any(axis=0).sum()) + 1
            if words > most_words:
                return None
        else:
            undecided += [(share * part, rest) for part, rest in left.by_residue(column)]
    return decided


def _laid_out(classes: Sequence[tuple[float, _Conditions]], times_per_s: float) -> EdgeClasses:
    """Words, in one go: every array below has one entry for each condition of each class, or for each
    residue that such a condition covers."""
    sizes = [len(left.progressions) for _, left in classes]
    columns = len(classes[0][1].factors)
    powers = np.concatenate([left.powers for _, left in classes])
    residues = np.concatenate([left.residues for _, left in classes])
    progressions = np.concatenate([left.progressions for _, left in classes])
    class_of = np.repeat(np.arange(len(classes)), sizes)

    # A condition that asks for nothing more covers the class: the only residue modulo 1 of a factor of its
    # own.
    column = np.argmax(powers > 1, axis=1) if columns else np.zeros(len(powers), dtype=np.int64)
    rows = np.arange(len(powers))
    power = powers[rows, column] if columns else np.ones(len(powers), dtype=np.int64)
    residue = residues[rows, column] if columns else np.zeros(len(powers), dtype=np.int64)
    column = np.where(power > 1, column, columns)

    # Factors of classes, class by class; a residue is told apart modulo the greatest power of its factor.
    keys, factor = np.unique(class_of * (columns + 1) + column, return_inverse=True)
    modulus = np.ones(len(keys), dtype=np.int64)
    np.maximum.at(modulus, factor, power)
    covered = modulus[factor] // power
    condition = np.repeat(rows, covered)
    nth = np.arange(len(condition)) - np.repeat(np.cumsum(covered) - covered, covered)
    residue = residue[condition] + nth * power[condition]
    factor, progression = factor[condition], progressions[condition]

    # Named residues of a factor are numbered.
    order = np.lexsort((residue, factor))
    by_factor = factor[order]
    is_new_factor = np.diff(by_factor, prepend=-1) > 0
    is_new = is_new_factor | (np.diff(residue[order], prepend=-1) != 0)
    number = np.cumsum(is_new) - 1
    bit = np.empty_like(residue)
    bit[order] = number - number[is_new_factor][by_factor]
    words_of_factor = -(-np.bincount(by_factor[is_new]) // WORD_BITS)
    further, factor_of_word, word = [], np.arange(len(keys)), factor.copy()
    for later in range(1, int(words_of_factor.max())):
        factors = np.flatnonzero(words_of_factor > later)
        start = len(factor_of_word)
        there = bit // WORD_BITS == later
        word[there] = start + np.searchsorted(factors, factor[there])
        factor_of_word = np.concatenate([factor_of_word, factors])
        further.append((slice(start, start + len(factors)), factors))

    # What each progression covers of each word.
    place = progression * len(factor_of_word) + word
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    bits = np.uint64(1) << (bit[order] % WORD_BITS).astype(np.uint64)
    masks = np.bitwise_or.reduceat(bits, starts)
    masks = masks.astype(np.min_scalar_type(int(masks.max())))
    covering = progression[order][starts]
    class_of_factor = keys // (columns + 1)
    return EdgeClasses(
        class_rates_per_s=np.array([share * times_per_s for share, _ in classes]),
        class_starts=np.searchsorted(class_of_factor, np.arange(len(classes))),
        class_of_factor=class_of_factor,
        residues=modulus.astype(np.float64),
        further=tuple(further),
        factor_of_word=factor_of_word,
        progression_starts=np.searchsorted(covering, np.arange(int(covering[-1]) + 2)),
        progression_words=word[order][starts],
        progression_masks=masks,
    )
