"""The ways in which functions that rotate are called, and which one works.

Names say what an argument may be, and calls decide: of all ways that fit the
names, the one counts that gives back what went in, in its shape.
"""

import inspect
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

Form = tuple[str, str]  # an argument's name, and what it is given

OFFSET = ("offset", "start", "start_pos", "seqlen_offset", "past_length")
WORDS = {
    "offset": (*OFFSET, "past", "past_len", "index_pos", "cache_len", "shift"),
    "positions": ("pos", "position", "t", "ids", "idx", "steps", "m"),
    "cos": ("cos", "c", "cosine", "freqs_cos"),
    "sin": ("sin", "s", "sine", "freqs_sin"),
    "length": ("seq_len", "seqlen", "length", "n", "max_seq_len", "kv_len"),
    "key": ("k", "key", "keys", "xk", "k_rope"),
    "table": ("freqs", "freqs_cis", "cis", "angles", "theta", "rope_cache"),
    "base": ("base", "rope_theta", "rope_base", "theta_base"),
    "width": ("dim", "d", "head_dim", "d_head", "dim_head", "rotary_dim"),
    "axis": ("seq_dim", "axis", "token_dim", "seq_axis"),
}
PARTS = {
    "offset": ("offset", "past", "start"),
    "positions": ("position", "input_pos"),
    "cos": ("cos",),
    "sin": ("sin",),
    "length": ("seq_len",),
    "key": ("key",),
    "table": ("freq", "rot", "angle", "cis", "emb", "cache", "pe"),
}
LAYS = (
    "",
    "of texts",
    "of texts and heads",
    "before heads",
    "of texts, before heads",
    "before texts and heads",
)
FORMS = {
    "offset": ("offset", "offset in a tensor", "offset of texts", "positions"),
    "positions": (
        "positions",
        "offset",
        "positions of texts",
        "offset in a tensor",
    ),
    "length": ("length", "end"),
    "key": ("key",),
    "base": ("base",),
    "width": ("width",),
    "axis": ("axis",),
    **{
        role: tuple(f"{role} {size}|{lay}" for size in sizes for lay in LAYS)
        for role, sizes in {
            "cos": ("whole", "half"),
            "sin": ("whole", "half"),
            "table": ("complex", "half", "whole", "stacked"),
        }.items()
    },
}
UNKNOWN = ("offset", "positions", "table", "key")
STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
IN_A_TENSOR = {"offset in a tensor", "offset of texts"}
NUMBERED = {"positions", "positions of texts"}
PLACED = {"offset", *NUMBERED, *IN_A_TENSOR}
LEFT_OUT = ("", "key", "base", "width", "axis")  # what has its own default
TURNED = ("x", "q", "xq", "qk", "query", "queries", "hidden_states")
ANGLES = ("cos", "sin", "table")  # roles of tensors alone


class Way(NamedTuple):
    """What each argument but the first is given, by its name."""

    forms: tuple[Form, ...] = ()
    first: int = 0  # where x stands among what is handed over by place

    @property
    def placed(self) -> bool:
        """Whether it is told where the first token stands."""
        return any(form in PLACED for _, form in self.forms)

    @property
    def numbered(self) -> bool:
        """Whether it is told where each token stands."""
        return any(form in NUMBERED for _, form in self.forms)

    @property
    def given(self) -> bool:
        """Whether angles are handed over."""
        return any("|" in form for _, form in self.forms)


def role(name: str) -> str:
    """What an argument of this name may be; "" if the name tells nothing."""
    lower = name.lower()
    for one, words in WORDS.items():
        if lower in words:
            return one
    for one, parts in PARTS.items():
        if any(part in lower for part in parts):
            return one
    return ""


def ways(thing: Any, told: str | None, name: str | None) -> Iterator[Way]:
    """All ways to call it that fit the names of its arguments."""
    try:
        called = getattr(thing, "forward", thing)
        listed = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        yield Way()
        return
    kept = [
        p for p in listed if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    first = place_of_x(kept)
    choices = [
        forms_of(p, told if p.name == name else None)
        for i, p in enumerate(kept)
        if i != first
    ]
    for chosen in product(*choices):
        forms = tuple(form for form in chosen if form is not None)
        sizes = {form.partition(" ")[2] for _, form in forms if "|" in form}
        if len(sizes) < 2 and sum(form in PLACED for _, form in forms) < 2:
            yield Way(forms, first)


def place_of_x(kept: list[inspect.Parameter]) -> int:
    """Where x stands: by its name, or behind the tables before it."""
    names = [p.name.lower() for p in kept]
    for first, name in enumerate(names):
        if name in TURNED and all(map(role, names[:first])):
            return first
    first = 0
    while first < len(kept) - 1 and role(names[first]) == "table":
        first += 1
    return first


def forms_of(p: inspect.Parameter, told: str | None) -> list[Form | None]:
    """What an argument may be given; None where it may be left out.

    Whose default is a number, or a word, takes no tensor in its place:
    `theta=10_000` is a base, and no table of angles.
    """
    needed = p.default is p.empty
    known = told or role(p.name)
    if not needed and known in LEFT_OUT:
        return [None]
    plain = isinstance(p.default, int | float | str)
    if plain and not told and known in ANGLES:
        return [None]
    kinds = (known,) if known else UNKNOWN
    forms: list[Form | None] = [
        (p.name, form) for one in kinds for form in FORMS[one]
    ]
    return forms if needed else [*forms, None]
