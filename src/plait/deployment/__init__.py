"""Deployments: the result of planning, as an immutable document.

`deployment` is the model, `assembly` puts one together, `invariants` says what must hold of it, `document`
writes and reads it as JSON, `explain` puts it into words.
"""
