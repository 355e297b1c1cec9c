"""Streams made up from a seed and the time, for demonstrations, tests and benchmarks."""
