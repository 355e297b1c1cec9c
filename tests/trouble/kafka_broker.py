"""A real Kafka broker for tests, and Spark's connector to it: jars from Maven Central, fetched once by the
Ivy that Spark brings along. Where they cannot be fetched, whoever asks is skipped with the reason."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from tests.patience import wait_until

from plait.spark.java import java_home

BROKER = ("org.apache.kafka", "kafka_2.13", "4.1.1")
CONNECTOR = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)

_SETTINGS = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
log.dirs={folder}/log
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


def connector_jars() -> list[Path]:
    """What Spark needs to read from Kafka."""
    return [jar for artifact in CONNECTOR for jar in _fetched(artifact, transitive=False)]


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """A broker that keeps its data in a folder; its address."""
    classpath = ":".join(map(str, _fetched(BROKER, transitive=True)))
    folder.mkdir()
    port, controller = _free_port(), _free_port()
    settings = folder / "server.properties"
    settings.write_text(_SETTINGS.format(port=port, controller=controller, folder=folder))
    identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    formatting = ["kafka.tools.StorageTool", "format", "-t", identity, "-c", str(settings), "--standalone"]
    subprocess.run([_java(), "-cp", classpath, *formatting], check=True, capture_output=True)
    with (folder / "output").open("wb") as output:
        command = [_java(), "-Xmx256m", "-cp", classpath, "kafka.Kafka", str(settings)]
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            wait_until(lambda: process.poll() is not None or _is_open(port))
            assert process.poll() is None, (folder / "output").read_text()
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _fetched(artifact: tuple[str, str, str], *, transitive: bool) -> list[Path]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plait" / "jars"
    folder = cache / "-".join(artifact[1:])
    if not (folder / "complete").exists():
        (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
        command = [_java(), "-jar", str(ivy), "-cache", str(cache / "ivy"), "-types", "jar", "bundle"]
        command += ["-dependency", *artifact, "-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
        command += [] if transitive else ["-notransitive"]
        fetching = subprocess.run(command, capture_output=True, text=True, check=False)
        if fetching.returncode or not [*folder.glob("*.jar")]:
            pytest.skip(f"{':'.join(artifact)} cannot be fetched: {fetching.stdout[-300:]}")
        (folder / "complete").touch()
    return sorted(folder.glob("*.jar"))


def _java() -> str:
    return str(java_home() / "bin" / "java")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
