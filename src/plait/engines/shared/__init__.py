"""Many queries computed together, one micro-batch at a time, in a database."""
