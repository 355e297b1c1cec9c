"""Everything that touches PySpark."""
