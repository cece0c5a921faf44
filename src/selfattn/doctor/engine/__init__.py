"""The engine: from a thing, or an answer, to what is found of it.

`outcome` is what an answer did on a probe, and `comparison` in what it
differs from the solution. `matching` looks for the mistake that does the
same, `allowances` sets aside what a right answer may do otherwise,
`shrinking` finds the smallest input, and `diagnosis` puts them together. For
a thing of some kind, `readings` does so in every way that it may be called,
`choice` keeps the one that makes sense, and `examination` is the door; its
work is done in a process of its own, by `isolation`.
"""
