"""What a reader sees and no machine computes: read, recorded, accepted.

A number in a sentence, a formula, a verdict, a question, a docstring's shape:
each is kept once, in its own file. A digest of it is in ``tests/accepted``, so
that no edit of it is silent: `make accept` shows what has changed, and writes
the digests again.
"""
