"""Starts Spark with the settings that the meaning of a query rests on: ANSI mode, and times in UTC."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from plait.spark.java import java_home


def local_session(cores: int = 2, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A quiet Spark inside this process, on so many cores of this machine, with further Spark settings."""
    os.environ["JAVA_HOME"] = str(java_home())
    # Python on Spark's side is this one, where Plait is installed, and not the first `python3` to be found.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Errors of queries are ours to report; PySpark would also log each as JSON.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    session = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("plait")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.ansi.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.log.level", "ERROR")
        .config(map=dict(settings or {}))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
