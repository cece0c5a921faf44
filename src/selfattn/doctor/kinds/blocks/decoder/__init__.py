"""Decoder blocks."""
