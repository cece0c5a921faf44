"""Functions that make masks."""
