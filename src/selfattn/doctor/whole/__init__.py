"""Whole models: token numbers in, logits or vectors out.

Nobody knows their numbers. So a model is asked for what holds of all: what
moves when what changes, with others in its batch, under padding, in chunks
with a cache, at every length, in other types, in training. `kind` says what
may be told of one, `calling` finds out how it is called, `seeing`, `writing`
and `learning` hold the questions, `mistakes` has words for those who fail,
`inside` finds the attention in it, and `examining` makes a report of it
all.
"""
