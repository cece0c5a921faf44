"""What makers of masks are handed: sizes, and what else they ask for.

Names say what an argument is; where a number will not do, a call tells what
stands for it: a tensor whose tokens are counted, its shape, or positions.
"""

from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.patient import handed

BATCH = 2  # texts, where a mask is made for some
NAMES: Mapping[str, tuple[str, ...]] = {
    "keys": ("k", "n_k", "j", "s", "src", "source", "kv", "key", "total"),
    "queries": ("q", "n_q", "i", "l", "tgt", "target", "query"),
    "past": ("past", "offset", "start", "cached", "prefix", "seen"),
    "batch": ("b", "bs", "bsz", "batch"),
    "heads": ("h", "heads", "n_heads", "nhead", "num_heads"),
    "device": ("device", "dev"),
    "dtype": ("dtype",),
    "fill": ("value", "fill", "neg_inf", "min_value"),
}
PARTS: Mapping[str, tuple[str, ...]] = {
    "past": ("past", "offset", "start", "cache", "prefix"),
    "batch": ("batch", "bsz"),
    "heads": ("head",),
    "keys": ("key", "kv", "src", "source", "total"),
    "queries": ("quer", "tgt", "target"),
    "device": ("device",),
    "dtype": ("dtype",),
    "fill": ("fill", "neg_inf"),
}
CROSSED = ("keys", "queries")  # in the order in which few name them
SIZES = ("size", "keys", "queries", "past")
OTHERS: Mapping[str, Any] = {
    "batch": BATCH,
    "heads": 1,
    "device": "cpu",
    "dtype": torch.float32,
    "fill": -torch.inf,
}
INSTEAD: Mapping[str, Callable[[int], Any]] = {  # of a number
    "": lambda n: n,
    "shape": lambda n: torch.Size((1, n)),
    "tokens": lambda n: torch.ones(1, n, dtype=torch.long),
    "x": lambda n: torch.ones(1, n, 4),
    "positions": torch.arange,
}


class Form(NamedTuple):
    """What each argument is given: its name, its role, how it is handed."""

    roles: tuple[tuple[str, str], ...]
    by_name: tuple[str, ...] = ()
    instead: str = ""

    @property
    def sizes(self) -> int:
        """How many numbers of tokens it takes."""
        return sum(role in SIZES for _, role in self.roles)

    @property
    def past(self) -> bool:
        """Whether it counts the keys that come before the first query."""
        return any(role == "past" for _, role in self.roles)


def role(name: str) -> str:
    """What an argument of this name is; "size" if the name does not tell."""
    lower = name.lower()
    for one, words in NAMES.items():
        if lower in words:
            return one
    for one, parts in PARTS.items():
        if any(part in lower for part in parts):
            return one
    of_it = {*lower.split("_")}
    return next((one for one in CROSSED if of_it & {*NAMES[one]}), "size")


def of_names(thing: Any, told: int | None) -> Form | None:
    """The form that fits a thing's names; None if it shows none."""
    kept, sizes = [], 0
    for p in trial_calls.listed(thing):
        needed = p.default is p.empty
        what = role(p.name)
        wanted = what in SIZES and sizes < (told or 0)
        if needed or wanted:
            kept.append((p, what))
            sizes += what in SIZES
    if not kept or not sizes:
        return None
    return Form(
        tuple((p.name, what) for p, what in kept),
        without_place(thing, {p.name for p, _ in kept}),
    )


def without_place(thing: Any, kept: Container[str]) -> tuple[str, ...]:
    """Of the arguments that are handed over, those that go by their names.

    Behind one that is left out, the next would come to stand in its place.
    """
    found, gap = [], False
    for p in trial_calls.listed(thing):
        gap = gap or p.name not in kept or p.kind is p.KEYWORD_ONLY
        if gap and p.name in kept:
            found.append(p.name)
    return tuple(found)


def given(form: Form, n_q: int, n_k: int) -> tuple[list[Any], dict[str, Any]]:
    """What a thing is handed, by its place and by its name."""
    places, named = [], {}
    first = True
    for name, what in form.roles:
        if what in SIZES:
            value = size(what, first, form, n_q, n_k)
            first = first and what == "past"
        else:
            value = OTHERS[what]
        if name in form.by_name:
            named[name] = value
        else:
            places.append(value)
    return places, named


def size(what: str, first: bool, form: Form, n_q: int, n_k: int) -> Any:
    """The number of what an argument counts, or what stands for it."""
    if what == "past":
        return n_k - n_q
    crossed = tuple(one for _, one in form.roles if one in CROSSED)
    if crossed == CROSSED:
        return n_k if what == "keys" else n_q
    return INSTEAD[form.instead](n_q if first else n_k)


def called(thing: Any, form: Form, n_q: int, n_k: int) -> Any:
    """What it makes of these sizes."""
    places, named = given(form, n_q, n_k)
    return handed(thing, *places, **named)


def tried(thing: Any, form: Form, n_q: int, n_k: int) -> Any:
    """The same, to look at; None if it raises."""
    return trial_calls.outcome(called, thing, form, n_q, n_k)


def form_of(thing: Any, told: int | None) -> Form | None:
    """How a thing is called; None if it must be called by place.

    Who may be told a second number, and makes a table of both, is.
    """
    two = of_names(thing, 2) if told is None else None
    if two and two.sizes == 2 and makes(thing, two, 3, 7):
        return two
    form = of_names(thing, told)
    if form is None or tried(thing, form, 3, 3) is not None:
        return form
    others = (form._replace(instead=instead) for instead in INSTEAD)
    return next((one for one in others if makes(thing, one, 3, 3)), form)


def makes(thing: Any, form: Form, n_q: int, n_k: int) -> bool:
    """Whether it makes a table of these sizes, called in a form."""
    made = trial_calls.as_tensor(tried(thing, form, n_q, n_k))
    return isinstance(made, Tensor) and made.shape[-2:] == (n_q, n_k)
