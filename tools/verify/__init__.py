"""Verifying: the stages of `make test`, and what they need."""
