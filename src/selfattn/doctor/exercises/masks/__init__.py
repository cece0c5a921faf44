"""The exercises of the chapter `masks`, and how they go wrong.

Spoilers: read this after you have tried.
"""
