"""Test support around the generated queries of `plait.benchmarks.planning`: random data, and near misses."""
