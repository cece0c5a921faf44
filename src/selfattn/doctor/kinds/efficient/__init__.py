"""Mechanisms that save work."""
