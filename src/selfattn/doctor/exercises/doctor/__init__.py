"""The exercises of the chapter `doctor`, and how they go wrong.

Spoilers: read this after you have tried.
"""
