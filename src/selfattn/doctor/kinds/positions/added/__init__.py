"""Modules that add a position to each token."""
