"""Blocks: attention and a feed-forward network, added and normed."""
