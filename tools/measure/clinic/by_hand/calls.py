"""What a sound layer is called with, and who may look at whom in it."""

import torch

from tools.measure.clinic.by_hand import formulas

MASKS = ("keep", "block", "add", "real", "padding", "future", "lengths")


def what_is_seen(facts, described, given, n_q, n_k):
    """All masks of a call, as one of (batch, queries, keys)."""
    seen = torch.ones(1, n_q, n_k).bool()
    flag = facts.get("names", {}).get("causal", "causal")
    if facts.get("causal") or given.get(flag) or given.get("is_causal"):
        seen = seen & formulas.past(n_q, n_k, "last")
    seen = seen & formulas.near(facts, n_q, n_k)
    for name, words in described.items():
        x = given.get(name.rstrip("?"))
        if words.split()[0] in MASKS and x is not None:
            if words.startswith("lengths"):
                x, words = torch.arange(n_k) < x[:, None], "keep b m"
            allowed = formulas.allowed(x, words)
            seen = seen & (allowed[:, 0] if allowed.ndim == 4 else allowed)
    return seen


def what_comes_in(facts, kind, given):
    """What asks and what is read, by their names or else in their order."""
    names = facts.get("names", {})
    found = {
        name: t
        for name, t in given.items()
        if torch.is_tensor(t) and t.ndim == 3 and t.is_floating_point()
    }
    first, *_ = (n for n in found if n != names.get("context"))
    x = names.get("x", first)
    if kind == "self-attention":
        return found[x], found[x]
    second, *_ = (n for n in found if n != x)
    return found[x], found[names.get("context", second)]
