"""Attention in steps, of which each may be done otherwise.

`design` has the steps; `scores`, `hiding`, `transposed` and `own_masks` have
what people do in their place, one axis a table: by mistake, or because they
mean it. Two of different steps go together, so that a mistake beside a
convention has its name, and two mistakes have theirs. `training` asks whether
a module drops weights when it should, and `number_types` in which type it
answers, which no step shows; `handing_back` has what is done to the caller's
numbers, and to the order of axes.
"""
