"""How Java and Spark run in tests: each statement runs a few times only, so it is compiled quickly rather
than well, or not at all."""

from __future__ import annotations

QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
# Over a few rows, Spark takes longer to compile an expression than to interpret it. What is started as a
# process of its own compiles, as it does for users, and so do the tests of functions.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
# For processes that are started with Java's own defaults.
QUICK_ENVIRONMENT = {"JDK_JAVA_OPTIONS": QUICK}
