"""Typed scalar expressions: what values are, which functions exist, and how each engine spells them."""
