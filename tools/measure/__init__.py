"""Measuring: all that writes into book/measurements."""
