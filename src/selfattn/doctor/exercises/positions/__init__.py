"""The exercises of the chapter `positions`, and how they go wrong.

Spoilers: read this after you have tried.
"""
