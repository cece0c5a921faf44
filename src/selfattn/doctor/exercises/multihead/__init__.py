"""The exercises of the chapter `multihead`, and how they go wrong.

Spoilers: read this after you have tried. Nearly every wrong answer in these
modules runs, and gives the right shape.
"""
