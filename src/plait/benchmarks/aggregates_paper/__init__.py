"""The experiments of the aggregates paper, with all of its optimizers. See README.md."""
