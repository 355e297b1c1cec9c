"""Queries that come and go under load: how soon a new one is live, and what the others notice of it."""
