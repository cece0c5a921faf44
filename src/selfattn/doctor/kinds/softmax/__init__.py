"""Functions and modules that turn scores into weights."""
