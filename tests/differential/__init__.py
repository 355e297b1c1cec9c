"""Random workloads through every way of running them, compared row by row with their definition."""
