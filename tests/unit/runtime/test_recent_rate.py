from __future__ import annotations

from plait.runtime.recent_rate import RecentRate


def test_the_rate_is_that_of_the_last_ten_seconds() -> None:
    now = [0.0]
    rate = RecentRate(lambda: now[0])
    for second in range(20):
        now[0] = float(second)
        rate.add(5)
    now[0] = 20.0
    assert rate.per_s == 5.0


def test_what_is_over_is_forgotten_also_if_nobody_asks() -> None:
    now = [0.0]
    rate = RecentRate(lambda: now[0])
    for second in range(10_000):
        now[0] = float(second)
        rate.add(1)
    assert len(rate._rows) <= 11
