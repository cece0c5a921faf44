"""The exercises of the page on Swin, and how they go wrong.

Spoilers: read this after you have tried. Every wrong answer in these modules
runs, and most would pass the tests that one writes first.
"""
