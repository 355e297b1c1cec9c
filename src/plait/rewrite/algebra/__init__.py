"""Normal forms of expressions, which the rewrite rules are built on.

Every function here takes expressions that are already in normal form and returns one. What they may assume of
values is DESIGN's: expressions are total and deterministic, logic is three-valued, comparison is a total
order on what is not NULL (NaN equals itself and is the greatest number). Nothing here moves arithmetic across
a comparison: `x + 1 > 3` is not `x > 2`, since `x + 1` may overflow, which is NULL.
"""
