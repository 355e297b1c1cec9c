"""A topic that vanishes under a run. Run by `test_kafka.py`, in a process whose Spark has the connector."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tests.patience import wait_until
from tests.trouble.troubled import NOON, Troubled, await_failed, queries_over, said_of, states, stream

from plait.spark.session import session

GONE = "external[topic-gone]: query even stopped: Kafka no longer has `orders` as it was read"
OTHERS = ("ones_of_s", "sums_of_s")


def topic_vanishes(folder: Path, spark: SparkSession, address: str) -> None:
    sql = f"""
    CREATE STREAM orders (id INT, at TIMESTAMP, WATERMARK FOR at AS at)
      WITH (connector = 'spark', format = 'kafka', value_format = 'json',
            option.kafka.bootstrap.servers = '{address}', option.subscribe = 'orders',
            option.startingOffsets = 'earliest');
    CREATE CONTINUOUS QUERY even AS SELECT id FROM orders WHERE id % 2 = 0;
    """
    troubled = Troubled(folder, spark, stream("s") + queries_over("s") + sql)
    order(spark, address, 0, 10)
    with troubled.running() as running:
        troubled.arrive("s", 0, 10)
        troubled.await_right(*OTHERS)
        wait_until(lambda: sorted(troubled.published("even")) == [(n,) for n in range(0, 10, 2)])
        delete(spark, address, "orders")
        await_failed(running, "even")
        assert GONE in said_of(running, "even")
        troubled.arrive("s", 10, 20)
        troubled.await_right(*OTHERS)
        assert states(running)["even"] == "failed"
    order(spark, address, 10, 14)  # which makes the topic anew
    with troubled.running() as running:
        await_failed(running, "even")
        said = said_of(running, "even")
        assert GONE in said
        assert "start anew" in said
        troubled.arrive("s", 20, 30)
        troubled.await_right(*OTHERS)
    assert sorted(troubled.published("even")) == [(n,) for n in range(0, 10, 2)]


def order(spark: SparkSession, address: str, first: int, last: int) -> None:
    values = [(json.dumps({"id": n, "at": f"{NOON:%Y-%m-%d %H:%M:%S}"}),) for n in range(first, last)]
    frame = spark.createDataFrame(values, "value STRING")
    options = {"kafka.bootstrap.servers": address, "topic": "orders"}
    frame.write.format("kafka").options(**options).save()


def delete(spark: SparkSession, address: str, topic: str) -> None:
    jvm = spark._jvm
    assert jvm is not None
    settings = jvm.java.util.HashMap()
    settings.put("bootstrap.servers", address)
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
    admin.deleteTopics(jvm.java.util.List.of(topic)).all().get()
    admin.close()


if __name__ == "__main__":
    place, broker, jars = sys.argv[1:]
    own = session("local[2]", settings={"spark.jars": jars})
    try:
        topic_vanishes(Path(place), own, broker)
    finally:
        own.stop()
