"""The one Spark of the tests, for those of whole runs."""

from tests.spark.conftest import spark

__all__ = ["spark"]
