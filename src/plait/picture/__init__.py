"""Pictures of a deployment: what is read, what is computed where, what is shared, who gets it.

`diagram` says what is to be seen, `fold` makes much of it into little, `layout` gives everything its place,
`svg` and `dot` write it down. `chart` draws what was measured. Drawing needs no program other than Python.
"""
