"""Full disks, for real and without root: `full_disks.py` is run where small ones may be made, in a namespace
of its own for mounts, with a Spark whose shuffles go to one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
# A disk in place of the first argument; the rest is run.
WITH_A_DISK = ("sh", "-c", 'mount -t tmpfs -o size=64m small "$0" && exec "$@"')


@pytest.mark.spark
def test_where_there_are_small_disks(tmp_path: Path) -> None:
    in_passing = tmp_path / "in_passing"
    in_passing.mkdir()
    if why := why_none(in_passing):
        pytest.skip(f"no user may make disks here: {why}")
    run = subprocess.run(
        [
            *(*NAMESPACE, *WITH_A_DISK, str(in_passing)),
            *(sys.executable, "-m", "pytest", "-m", "spark", str(HERE / "full_disks.py")),
            *("--basetemp", str(tmp_path / "inside"), "-p", "no:cacheprovider"),
        ],
        env={**os.environ, "SPARK_LOCAL_DIRS": str(in_passing)},
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-10_000:]
    assert "4 passed" in run.stdout


def why_none(folder: Path) -> str:
    try:
        made = subprocess.run(
            [*NAMESPACE, *WITH_A_DISK, str(folder), "true"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return str(error)
    return made.stderr or "it fails" if made.returncode else ""
