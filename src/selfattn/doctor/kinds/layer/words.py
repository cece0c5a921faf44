"""Which part of a layer a name stands for."""

import re

WORDS = {  # what others call a part, when what says nothing is left out
    "q": {"q", "query", "queries"},
    "k": {"k", "key", "keys"},
    "v": {"v", "value", "values"},
    "out": {"o", "out", "output", "dense", "final", "unifyheads", ""},
    "qkv": {"qkv", "querykeyvalue", "in", "attn", "attention", "kqv"},
    "kv": {"kv", "keyvalue"},
}
SAYS_NOTHING = {
    *("w", "to", "proj", "projection", "projections", "linear", "lin", "c"),
    *("layer", "fc", "weight", "weights", "matrix", "mat", "conv"),
}
MAPS = {  # likewise, but not alone
    *("map", "maps", "mapping", "mappings", "kernel", "kernels"),
}


def part_called(name: str) -> str | None:
    """The part that a name stands for, if it does.

    >>> [part_called(name) for name in ("to_q", "W_key", "c_proj", "norm")]
    ['q', 'k', 'out', None]
    """
    words = re.split(r"[_.\s]+", re.sub("([a-z])([A-Z])", r"\1_\2", name))
    words = [word.lower() for word in words]
    if {*words} <= MAPS:
        return None
    known = SAYS_NOTHING | MAPS
    rest = "".join(word for word in words if word not in known)
    for part, names in WORDS.items():
        if {rest, rest.removeprefix("w"), rest.removesuffix("w")} & names:
            return part
    return None
