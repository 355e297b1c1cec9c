"""One Spark for all tests that need it: a JVM takes ten seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from plait.spark.session import session  # PySpark is slow to import where nothing uses it

    # Tests run many statements once: compile them quickly rather than well.
    options = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
    started = session(
        "local[2]",
        settings={"spark.driver.extraJavaOptions": options, "spark.sql.shuffle.partitions": "2"},
    )
    yield started
    started.stop()
