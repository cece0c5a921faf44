"""What is done to the book: set up, built, verified, measured.

Each command is a module, and is run from the project's root: ``python -m
tools.verify.stages``. The make targets are short for these.
"""
