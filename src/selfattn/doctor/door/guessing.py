"""Which kind a thing looks like, and why."""

from typing import Any, NamedTuple

import torch
from torch import nn

from selfattn.doctor.door import functions, modules, wholes
from selfattn.doctor.door.making import made
from selfattn.doctor.door.names import PLAIN, says
from selfattn.doctor.door.trying import needed
from selfattn.doctor.engine.outcome import in_words
from selfattn.doctor.patient import numberless

SCRIPTED = (
    "torch.jit compiled it, and what it takes cannot be read any more; the "
    "function that it was made of can be examined"
)


class Guess(NamedTuple):
    """What a thing seems to be: the likeliest kind, why, and others."""

    name: str
    kind: str = ""  # "" if it looks like none
    why: str = ""
    others: tuple[str, ...] = ()
    used_by: tuple[str, ...] = ()  # what else in its file uses it

    def __str__(self) -> str:
        """In a sentence.

        >>> print(Guess("mine", "softmax", "it sums to one"))
        mine looks like softmax: it sums to one.
        """
        if self.kind:
            return f"{self.name} looks like {self.kind}: {self.why}."
        return f"{self.name} is left out: {self.why}."


def guess(thing: Any, name: str) -> Guess:
    """What a function, a class or a module looks like."""
    if isinstance(thing, torch.jit.ScriptFunction):
        return Guess(name, "", SCRIPTED)
    try:
        one = made(thing)
    except Exception as error:
        raised = in_words(error)
        return Guess(name, "", f"as I tried to make one, it raised {raised}")
    is_module = isinstance(one, nn.Module)
    if missing := numberless(one):
        return Guess(name, "", missing)
    own = getattr(type(one) if is_module else one, "__name__", "")
    names = f"{own or type(one).__name__} {name}"
    found = wholes.kinds_of(one, names) if is_module else []
    found = found or (modules if is_module else functions).kinds_of(one, names)
    if not found:
        why = "of its name, though it does not do what such a thing does"
        most = functions.MOST
        plain = [k for k in PLAIN if len(needed(one)) <= most[k]]
        found = [(kind, why) for kind in plain if says(names, kind)][:1]
    if not found:
        return Guess(name, "", "it looks like nothing that I examine")
    (kind, why), *others = found
    return Guess(name, kind, why, tuple(kind for kind, _ in others))
