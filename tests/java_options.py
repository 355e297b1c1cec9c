"""How Java runs in tests: each statement runs a few times only, so it compiles quickly rather than well."""

from __future__ import annotations

QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
# For processes that are started with Java's own defaults.
QUICK_ENVIRONMENT = {"JDK_JAVA_OPTIONS": QUICK}
