"""Decoders with a cache."""
