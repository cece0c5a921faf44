"""Functions that make padding masks."""
