"""The exercises of the chapter `scaling`, and how they go wrong.

Spoilers: read this after you have tried. Every wrong answer in these modules
runs, and keeps its rows summing to one where the right answer does.
"""
