"""Many queries for the price of one: Plait's shared trunk against plain Spark, over the same data."""
