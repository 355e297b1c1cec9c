"""The Spark that these tests share with those of `tests/spark`."""

from tests.spark.conftest import spark

__all__ = ["spark"]
