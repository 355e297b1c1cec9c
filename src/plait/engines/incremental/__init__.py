"""Plans computed exactly, one micro-batch at a time, in a database: for every plan there is.

A micro-batch itself is `engines.shared.trunk`.

| module | decides |
|---|---|
| `bands` | what has become final, and what each node needs of its inputs for it |
| `layout` | what is stored, and in which stages the rest is computed |
| `statements` | the SQL of a stage |
| `numbering` | the rows of row windows |
| `slices` | into how many statements much work is cut |
| `state` | what the file holds besides rows |
| `increments` | what plans give when their watermark moves, and what can then be forgotten |
"""
