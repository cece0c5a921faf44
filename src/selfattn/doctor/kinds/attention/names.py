"""What a function of attention calls its queries, keys, values and masks."""

from typing import Any

from selfattn.doctor.kinds.attention.needed_masks import of_lengths, unsaid
from selfattn.doctor.kinds.three_inputs import queries_keys_values
from selfattn.doctor.patient import Facts, parameters

WORDS = {  # what others call the arguments, the most common first
    "mask": ("mask", "attn_mask", "attention_mask", "key_mask", "att_mask"),
    "causal": ("causal", "is_causal"),
}


def looked_up(thing: Any, told: Facts) -> tuple[Facts, bool]:
    """Its names for the arguments, and whether it plainly has a mask.

    What is called so as if it took lengths may be something else.
    """
    named = argument_names(thing) | dict(told.get("names") or {})
    names = with_a_mask(thing, named, told)
    known = "mask" in names
    if not known and len(lengths := of_lengths(thing, names)) == 1:
        names = {**names, "mask": lengths[0]}
    return names, known


def argument_names(thing: Any) -> dict[str, str | None]:
    """Ours → theirs; None for an argument that is known by its place."""
    listed = parameters(thing)
    names: dict[str, str | None] = {"q": None, "k": None, "v": None}
    if three := queries_keys_values(listed):
        names |= dict(zip("qkv", three, strict=True))
    for ours, theirs in WORDS.items():
        found = [name for name in theirs if name in listed]
        found += [name for name in listed[3:] if ours in name]
        if found:
            names[ours] = found[0]
    return names


def with_a_mask(thing: Any, names: Facts, told: Facts) -> Facts:
    """The names; of who tells what a mask says, the mask's whatever it is.

    It is the one argument behind q, k and v that may stay unsaid.
    """
    if "mask" in names or not {"mask", "mask_axes"} & told.keys():
        return names
    left = unsaid(thing, {*names.values(), *(told.get("call") or {})})
    return {**names, "mask": left[0]} if len(left) == 1 else names
