"""How functions of attention are called: by whatever names, in any layout."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading, UnclearError
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.attention.layouts import (
    FOUR,
    LAYOUTS,
    MASKS,
    TO,
    TURNED,
    comes_out,
    laid_back,
    laid_out,
    mask_laid_out,
)
from selfattn.doctor.kinds.attention.names import looked_up
from selfattn.doctor.kinds.attention.needed_masks import (
    hide_keys,
    meanings,
    without_any,
)
from selfattn.doctor.kinds.mask_meanings import TO_HIDE, as_meant
from selfattn.doctor.patient import Facts, handed
from selfattn.doctor.probes import numbers

USUAL_AXES = ("BHND", "BND", "BNHD")

FACTS = {
    "layout": Fact("the axes of q, k and v", LAYOUTS),
    "mask": Fact(
        "what a mask says",
        TO_HIDE,
        need="mask",
    ),
    "mask_axes": Fact("which axes a mask has", MASKS, need="mask"),
    "names": Fact(
        "its names for q, k, v, mask and causal, as a dict",
        saying=sayings.names_for("q", "k", "v", "mask", "causal", "padding"),
    ),
    "empty_row": Fact(
        "what a query gets that may see nothing",
        {
            "zeros": "zeros",
            "nan": "NaN",
            "average": "the average of all values",
            "everything": "what it would get without a mask",
        },
        tried=False,
    ),
    "alignment": Fact(
        "the key on which, if causal, the last or first query sits",
        {"last": "the last on the last", "first": "the first on the first"},
        tried=False,
    ),
    "causal": Fact(
        "whether it hides later keys without being told to",
        {False: "it sees them", True: "it hides them"},
        tried=False,
    ),
    "scale": Fact(
        "what the scores are multiplied by, if not by 1/√d",
        saying=sayings.NUMBER,
    ),
    "cap": Fact(
        "the number that no score passes: cap · tanh(score / cap)",
        saying=sayings.ABOVE_ZERO,
    ),
    "scores": Fact(
        "how queries are compared with keys",
        {"product": "their product", "cosine": "the cosine of their angle"},
        tried=False,
    ),
    "bias": Fact(
        "what is added to scores: bias(n_heads, n_q, n_k)",
        saying=sayings.FUNCTION,
    ),
    "window": Fact(
        "how many keys to each side it sees, its own counted",
        saying=sayings.COUNT,
    ),
    "table": Fact(
        "a mask it keeps by itself: table(n_q, n_k), True: seen",
        saying=sayings.FUNCTION,
    ),
    "grouped": Fact(
        "whether keys and values have fewer heads than queries",
        {
            False: "as many",
            True: "a head of keys for a group of heads of queries",
            "one": "one head of keys, without an axis for it",
        },
        tried=False,
    ),
    "shared": Fact(
        "which of q, k and v have no axis for heads",
        saying=sayings.some_of("qkv"),
    ),
    "square": Fact(
        "whether it needs as many queries as keys", saying=sayings.FLAG
    ),
    "dropout": Fact(
        "the share of weights that it drops in training", saying=sayings.SHARE
    ),
    "call": Fact(
        "what else it is to be called with, as a dict",
        saying=sayings.ARGUMENTS,
    ),
}
# Which fact says so, where somebody builds on purpose what is a mistake.
MEANT = {
    "no scale": "scale=1.0",
    "cosine instead of product": 'scores="cosine"',
    "causal without being asked": "causal=True",
    "first on first": 'alignment="first"',
}
# Where a text sees its own past, there is no other place for a query.
PROMISED_BY = {"first on first": "alignment"}


def read(thing: Any, told: Facts) -> Reading:
    """The names of its arguments, and what it has none for."""
    if not callable(thing):
        raise UnclearError("A function is asked for: hand over itself.")
    names, known = looked_up(thing, told)
    calls = partial(adapt, thing)
    may_be = not known and "mask" in names
    if may_be and not hide_keys(calls, {"names": names}, told):
        names = {ours: name for ours, name in names.items() if ours != "mask"}
    lacks = lacking(names, told)
    has = tuple(
        n
        for n in ("mask", "causal")
        if n not in lacks and (known or n == "causal")
    )
    if "H" in (told.get("layout") or ""):
        has = (*has, "heads")  # whose axes have been told
    # Who takes one sequence alone says so, or refuses to take more.
    usual = [x for x in LAYOUTS if x not in ("N D", *TURNED) and TO not in x]
    if "layout" not in told:
        usual = turning(thing, names, told) or usual
        usual = features_first(thing, names, told) or usual
    open_: dict[str, Any] = {"layout": usual}
    if "mask" in lacks:
        fixed = {"names": names, "mask": "keep", "mask_axes": "any"}
        return Reading(fixed, open_, lacks, has)
    open_["mask"] = meanings(names["mask"], told)
    seen = Reading({"names": names}, open_, lacks, has)
    return seen.with_facts(**without_any(thing, calls, seen.facts, told))


def lacking(names: Facts, told: Facts) -> dict[str, str]:
    """What it cannot be asked, each with the reason.

    Of what was told to have no name it has none.
    """
    flags = {name for name in ("mask", "causal") if names.get(name)}
    wanted = {"mask": {"mask"}, "causal": {"causal"}}
    wanted["both"] = {"mask", "causal"}
    wanted |= {"rows": {"mask"}, "texts": {"mask"}}
    lacks = {
        need: "it has no argument for it"
        for need, flags_of_it in wanted.items()
        if not flags_of_it <= flags
    }
    if told.get("causal") is True:
        lacks |= dict.fromkeys(("causal", "both"), "it is causal anyway")
    if told.get("square"):
        lacks["length"] = "it needs as many"
    return lacks


def turning(thing: Any, names: Facts, told: Facts) -> list[str]:
    """The layouts in which its output has other axes than its inputs.

    Seen by what becomes of sizes of which no two are alike; none, if the
    output has the axes of its inputs in some layout, or no call succeeds.
    """
    b, h, n, d = 2, 3, 5, 4
    attend = adapt(thing, {**told, "names": names, "layout": "any"})
    found = []
    for axes, size in (("BHND", (b, h, n, d)), ("BNHD", (b, n, h, d))):
        q, k, v = (numbers(*size, seed=seed) for seed in range(3))
        if is_shared(told):
            k, v = (x.select(axes.index("H"), 0) for x in (k, v))
        output = trial_calls.outcome(attend, q, k, v)
        if isinstance(output, Tensor):
            came = comes_out(output.shape, (b, h, n, d))
            if came == axes:
                return []
            found += [one for one in LAYOUTS if one == f"{axes}{TO}{came}"]
    return found


def features_first(thing: Any, names: Facts, told: Facts) -> list[str]:
    """The layouts with tokens behind the features, if it is in one of them.

    Seen by texts of other lengths and values of another width: who takes
    these in such a layout, and not with the features last, has no other. Who
    has an axis for heads behind the tokens may take three axes by chance.
    """

    def takes(layout: str) -> bool:
        attend = adapt(thing, {**told, "names": names, "layout": layout})
        front = (2, 3) if layout in FOUR else (2,)
        sizes = (4, 5), (6, 5), (6, 3)
        given = [numbers(*front, *size, seed=3) for size in sizes]
        output = trial_calls.outcome(attend, *given)
        return isinstance(output, Tensor) and output.shape == (*front, 4, 3)

    found = [one for one in TURNED if takes(one)]
    return [] if found and any(map(takes, USUAL_AXES)) else found


def is_shared(facts: Facts) -> bool:
    """Whether keys and values have no axis for heads, by either fact."""
    if facts.get("grouped") is None:
        return {*"kv"} <= {*(facts.get("shared") or ())}
    return bool(facts["grouped"] == "one")


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with (…, n, d), a mask that is True where one may look."""

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
    ) -> object:
        layout, names = facts["layout"], facts["names"]
        front = q.shape[:-2]
        given: dict[str, Any] = {
            n: laid_out(x, layout) for n, x in (("q", q), ("k", k), ("v", v))
        }
        if is_shared(facts) and layout in FOUR:
            axis = layout.index("H")
            given |= {n: given[n].select(axis, 0) for n in "kv"}
        if mask is None and facts.get("without") == "a mask":
            mask = torch.ones(q.shape[-2], k.shape[-2]).bool()
        if mask is None and facts.get("without") == "nothing":
            given["mask"] = None
        if mask is not None:
            mask = mask_laid_out(mask, q, k.shape[-2], facts)
            given["mask"] = as_meant(mask, facts["mask"], q.dtype)
        if causal:
            given["causal"] = True
        by_name = {names[n]: x for n, x in given.items() if names[n]}
        in_order = [x for n, x in given.items() if not names[n]]
        by_name |= dict(facts.get("call") or {})
        return laid_back(handed(thing, *in_order, **by_name), layout, front)

    return attend
