"""What queries have in common beyond equal sub-plans: predicates that differ in constants, windows over the
same stream, projections of the same shape.

| module | decides |
|---|---|
| `families` | which queries of a set share what |
| `chains` | the filters and projections above a node, put into one |
| `patterns` | how the predicates of many queries are told apart in one pass |
| `shapes` | which projections and filters are equal but for constants |
| `selects`, `joins` | which queries share a pass over a stream, and a join |
| `trees` | which window aggregates share their partials |
| `tagged` | how plans of any kind that are equal but for constants are computed as one |
| `numbered` | numbers for what they have in common |
"""
