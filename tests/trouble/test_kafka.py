"""Trouble with Kafka, by a real broker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.java_options import QUICK_ENVIRONMENT
from tests.trouble.kafka_broker import broker, connector_jars

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.spark
def test_a_topic_that_vanishes(tmp_path: Path) -> None:
    jars = ",".join(map(str, connector_jars()))
    with broker(tmp_path / "kafka") as address:
        run = subprocess.run(
            [sys.executable, "-m", "tests.trouble.kafka_scenario", str(tmp_path), address, jars],
            cwd=ROOT,
            env={**os.environ, **QUICK_ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stdout + run.stderr[-5000:]
