"""The one Spark of the tests, for hostile runs."""

from tests.spark.conftest import spark

__all__ = ["spark"]
