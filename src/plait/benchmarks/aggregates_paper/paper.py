"""Every number that the paper's text and tables give about its experiments. Figures 2 and 3 are pictures;
what the text says of them is in the claims of the benchmark."""

from __future__ import annotations

from dataclasses import dataclass

TITLE = "Shein, Chrysanthis, Labrinidis"


@dataclass(frozen=True)
class Standing:
    """How often an optimizer is the best, and by how much of the best it costs more on average where it is
    not."""

    best_share: float
    over_best_when_not_best: float


# Table 3, and the text below it.
MAX_COST = {"wg-i": Standing(0.80, 0.03), "wg-tn": Standing(0.17, 0.48)}
TOTAL_COST = {"wg-i": Standing(0.05, 0.09), "wg-tn": Standing(0.90, 0.002)}

# Table 4.
PLAN_SECONDS = {
    "g-rand": 0.01,
    "w-rand": 2.31,
    "wg-rand": 0.02,
    "g-rr": 0.01,
    "w-rr": 2.34,
    "wg-rr": 0.01,
    "g-tl": 0.01,
    "w-tl": 12.6,
    "wg-tl": 9.11,
    "w-tn": 2.95,
    "wg-tn": 2.83,
    "w-i": 5.68,
    "wg-i": 3.94,
}
MOST_PLAN_SECONDS = 13.0
