"""Options of the whole test suite, and the Spark that all tests share: a JVM takes ten seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.java_options import INTERPRETED, QUICK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--complete",
        action="store_true",
        help="write the golden plans anew: look at the difference before you commit",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--complete") and os.environ.get("CI"):
        raise pytest.UsageError("golden plans are not rewritten by CI")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from plait.spark.session import session  # PySpark is slow to import where nothing uses it

    started = session(
        "local[2]",
        settings={"spark.driver.extraJavaOptions": QUICK, "spark.sql.shuffle.partitions": "2"} | INTERPRETED,
    )
    yield started
    started.stop()
