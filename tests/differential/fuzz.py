"""Random queries by all ways, as many as wanted: `python -m tests.differential.fuzz 1000`.

Every workload has queries of each class, and variants of them that share their work; all of them run together
and, with `--alone`, each also alone. A failure is printed with what repeats it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from tests.differential.checking import check_alone, check_together
from tests.differential.harness import Tally
from tests.differential.variants import shared_workload, woven_workload
from tests.differential.workloads import RandomWorkload
from tests.java_options import QUICK

from plait.spark.session import session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("queries", type=int, nargs="?", default=100, help="how many, at least")
    parser.add_argument("--seed", type=int, default=0, help="of the first workload")
    parser.add_argument("--query", help="check this query of that workload alone, such as q7")
    parser.add_argument("--alone", action="store_true", help="also each query by itself, which takes long")
    parser.add_argument("--engines", choices=("any", "duckdb", "spark"), default="any")
    asked = parser.parse_args()
    spark = session(settings={"spark.driver.extraJavaOptions": QUICK})
    tally, seed = Tally(), asked.seed
    while not tally.queries or (asked.query is None and tally.queries.total() < asked.queries):
        together = woven_workload(seed) if asked.engines == "spark" else shared_workload(seed)
        if asked.query is not None:
            together = together.only(asked.query)
        _check(together, spark, tally, asked.engines)
        if asked.alone or asked.query is not None:
            _check(together, spark, tally)
        seed += 1
    spark.stop()
    _tell(str(tally))
    sys.exit(bool(tally.findings) or not tally.bites)


def _check(workload: RandomWorkload, spark: SparkSession, tally: Tally, engines: str | None = None) -> None:
    known = len(tally.findings)
    with tempfile.TemporaryDirectory(prefix="plait-fuzz-") as folder:
        if engines is None:
            check_alone(workload, spark, Path(folder), tally)
        else:
            check_together(workload, spark, Path(folder), tally, engines=engines)
    for finding in tally.findings[known:]:
        _tell(f"\n{finding}\n")
    done = f"{tally.queries.total()} queries, {tally.comparisons.total()} compared"
    _tell(f"up to workload {workload.seed}: {done}, {len(tally.findings)} differ")


def _tell(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
