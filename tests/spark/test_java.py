"""Spark's Java where the machine has none: the packaged runtime behind the wrapper."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from plait.spark import java

pytestmark = pytest.mark.spark


@pytest.fixture
def machine_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache with a blank"))


@pytest.mark.usefixtures("machine_without_java")
def test_packaged_java_is_started_without_the_module_it_lacks() -> None:
    executable = java.java_home() / "bin" / "java"
    arguments = [
        "--add-modules=jdk.incubator.vector",
        "-Dname=two words",
        "-XshowSettings:properties",
        "-version",
    ]
    answer = subprocess.run([executable, *arguments], capture_output=True, text=True, check=True)
    assert "name = two words" in answer.stderr


def test_java_of_the_machine_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    packaged = java._packaged_java_home(tmp_path / "plait")
    monkeypatch.setenv("JAVA_HOME", str(packaged))  # a Java that suits
    assert java.java_home() == packaged
