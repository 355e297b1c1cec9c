"""Deployments: the result of planning, as an immutable document.

`deployment` is the model, `assembly` puts one together, `invariants` says what must hold of it and
`statements` which numbers must be in it, `document` writes and reads it as JSON; `explain`, `describe` and
`report` put it into words.
"""
