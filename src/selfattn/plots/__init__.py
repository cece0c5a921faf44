"""Figures, by chapter: each function takes an axes and returns it.

In a notebook, whoever imports them has figures shown dense enough for any
screen: see `selfattn.plots.showing`.
"""

from selfattn.plots.showing import show_densely

show_densely()
