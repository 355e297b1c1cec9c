"""What a report draws of its figures."""

from __future__ import annotations

from plait.benchmarks.report import Report

LINES = {"Plait": "joins_{}_seconds", "plain Spark": "joins_plain_spark_{}_seconds"}


def test_figures_are_drawn_over_the_number_in_their_keys() -> None:
    figures = {
        "joins_10_seconds": 4.1,
        "joins_100_seconds": 4.4,
        "joins_100_memory_mb": 900,
        "joins_plain_spark_10_seconds": 44.0,
        "other_joins_10_seconds": 1.0,
    }
    report = Report("sharing", False, dict(figures))
    report.draw("joins", "Joins", "queries", "seconds", LINES)
    drawn = {line.name: line.points for line in report.charts["joins"].series}
    assert drawn == {"Plait": ((10, 4.1), (100, 4.4)), "plain Spark": ((10, 44.0),)}
    assert report.to_json()["figures"] == figures


def test_what_was_not_measured_is_not_drawn() -> None:
    report = Report("sharing", False, {"joins_10_seconds": 0.0, "joins_100_seconds": "too long"})
    report.draw("joins", "Joins", "queries", "seconds", LINES)
    assert not report.charts
