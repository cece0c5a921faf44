"""Modules that attend: self-attention and cross-attention."""
