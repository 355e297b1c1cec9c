"""What operators cost, and how much data there is of everything.

`sizes` (with `selectivity`) estimates rates and relations bottom-up, `model` makes costs of them with the
unit costs of `units`, `network` knows sites and the way between them, and `recost` computes all costs of a
finished deployment again, from its document alone.
"""
