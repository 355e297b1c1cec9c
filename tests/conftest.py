"""Options of the whole test suite."""

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--complete",
        action="store_true",
        help="write the golden plans anew: look at the difference before you commit",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--complete") and os.environ.get("CI"):
        raise pytest.UsageError("golden plans are not rewritten by CI")
