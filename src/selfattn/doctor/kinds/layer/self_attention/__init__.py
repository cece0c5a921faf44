"""Modules that attend from a sequence to itself."""
