"""The exercises of the page on Linformer, and how they go wrong.

Spoilers: read this after you have tried. Every wrong answer in these modules
runs, and most would pass the tests that one writes first.
"""
