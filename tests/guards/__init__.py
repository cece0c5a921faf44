"""What must hold for everything a reader sees, as functions.

Each guard takes a notebook, a text or a folder and returns what is wrong with
it, one sentence a finding; an empty list means nothing is.
"""
