"""One Spark for all tests that need it: a JVM takes ten seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from plait.spark.session import local_session  # PySpark is slow to import where nothing uses it

    session = local_session(
        cores=2,
        settings={
            # Tests run many statements once: plan and compile them quickly rather than well.
            "spark.sql.adaptive.enabled": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
        },
    )
    yield session
    session.stop()
