"""Plait plans many continuous SQL queries together and runs the shared plan on Apache Spark."""
