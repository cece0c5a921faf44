"""Figures, by chapter: each function takes an axes and returns it."""
