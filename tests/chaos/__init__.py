"""Kills a running Plait at every step and at random moments; its results must not show it."""
