"""Random queries by all ways, as many as wanted: `python -m tests.differential.fuzz 1000`.

Every workload has one query of each class. A failure is printed with what repeats it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from tests.differential.checking import check
from tests.differential.harness import Tally
from tests.differential.workloads import RandomWorkload, random_workload
from tests.java_options import QUICK

from plait.spark.session import session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("queries", type=int, nargs="?", default=100, help="how many, at least")
    parser.add_argument("--seed", type=int, default=0, help="of the first workload")
    parser.add_argument("--query", help="check this query of that workload alone, such as q7")
    asked = parser.parse_args()
    spark = session(settings={"spark.driver.extraJavaOptions": QUICK})
    tally, seed = Tally(), asked.seed
    while not tally.queries or (asked.query is None and tally.queries.total() < asked.queries):
        workload = random_workload(seed)
        _check(workload if asked.query is None else workload.only(asked.query), spark, tally)
        seed += 1
    spark.stop()
    _tell(str(tally))
    sys.exit(bool(tally.findings) or not tally.bites)


def _check(workload: RandomWorkload, spark: SparkSession, tally: Tally) -> None:
    known = len(tally.findings)
    with tempfile.TemporaryDirectory(prefix="plait-fuzz-") as folder:
        check(workload, spark, Path(folder), tally)
    for finding in tally.findings[known:]:
        _tell(f"\n{finding}\n")
    done = f"{tally.queries.total()} queries, {tally.comparisons.total()} compared"
    _tell(f"up to workload {workload.seed}: {done}, {len(tally.findings)} differ")


def _tell(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
