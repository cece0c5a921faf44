"""Functions that make causal masks."""
