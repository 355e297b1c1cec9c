"""Windows that share: time cut at the edges of all of them, partial aggregates, finals (aggregates paper,
§2)."""
