"""Hostile inputs for every public callable: see `hostile.campaign`."""
