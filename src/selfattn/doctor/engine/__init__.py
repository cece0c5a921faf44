"""The engine: from a thing, or an answer, to what is found of it.

`outcome` is what an answer did on a probe, if Python called it at all, which
`uncalled` tells, and `comparison` in what it differs from the solution.
`matching` looks for the mistake that does the same, `naming` and `likeness`
for what comes near where none does, by `evidence` and, of `two_at_once`, by
both; `by_itself` has what needs none to be seen; `allowances` sets aside what
a right answer may do otherwise, `shrinking` finds the smallest input, and
`diagnosis` puts them together. For a thing of some kind, `readings` lists the
ways in which it may be called, `visits` examines it in one, `choice` keeps the
one that makes sense, `left_open` asks after a fact with which all would be
right, `promises` whose promise was broken, `unknown` tells what nobody may be
accused by, `written_formulas` holds it to a formula that was told as a
function, and `called_parts` looks at a part of what is healthy that it is only
seen to call. `examination` is the door; its work is done in a process of its
own, by `isolation`, which `processes` ends, and in no mode of PyTorch's, by
`modes`; whose code replaces functions that `originals` knows has no diagnosis.
"""
