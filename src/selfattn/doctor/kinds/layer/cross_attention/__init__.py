"""Modules that attend from one sequence to another."""
