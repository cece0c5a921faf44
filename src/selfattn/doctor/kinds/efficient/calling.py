"""How mechanisms that save work are called, and what they claim."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds.attention import calling as attention
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts, handed, parameters

# By which it is told, or read off, what a mechanism claims.
CLAIMS = ("formula", "window", "table", "kernel", "key_kernel")
# Which fact says so, where somebody builds on purpose what is a mistake.
FEATURES = (
    "another feature map",
    "relu for its features",
    "softmax for its features",
)
MEANT = {
    "causal without being asked": "causal=True",
    **dict.fromkeys(FEATURES, "kernel=…"),
}
# Who told of no kernel promised none: that it is elu + 1 was assumed.
PROMISED_BY = dict.fromkeys(FEATURES, ("kernel", "formula"))
PADDING = ("key_padding_mask", "padding_mask", "kv_mask", "key_mask")


FACTS = {
    "layout": attention.FACTS["layout"],
    "formula": Fact(
        "what it computes",
        {
            "claimed": "softmax, or under the mask or with the kernel claimed",
            "own": "weights of its own, of which only properties are asked",
            "linear": "linear attention, the features elu + 1",
        },
        tried=False,
    ),
    "causal": Fact(
        "whether, with a formula of its own, it is causal without a flag",
        {False: "it needs the flag", True: "it hides later keys anyway"},
        tried=False,
    ),
    "padding": Fact(
        "what a mask for padding, (batch, n_k), says",
        {"keep": "True allows", "block": "True forbids"},
        need="padding",
    ),
    **{
        name: attention.FACTS[name]
        for name in ("mask", "mask_axes", "empty_row")
    },
    "window": attention.FACTS["window"],
    "table": Fact(
        "the mask it claims: table(n_q, n_k), True where it looks",
        saying=sayings.FUNCTION,
    ),
    "kernel": Fact(
        "the feature map it claims, with a kernel for softmax",
        saying=sayings.FUNCTION,
    ),
    "key_kernel": Fact(
        "the feature map of its keys, where they have another one",
        saying=sayings.FUNCTION,
    ),
    "square": attention.FACTS["square"],
    "names": attention.FACTS["names"],
    "call": attention.FACTS["call"],
    "alignment": attention.FACTS["alignment"],
}


def read(thing: Any, told: Facts) -> Reading:
    """The names of its arguments, and whether it can be causal."""
    seen = attention.read(thing, told)
    masks = [name for name in PADDING if name in parameters(thing)]
    names = {"padding": masks[0] if masks else None, **seen.facts["names"]}
    masked = is_masked(told, names)
    lacks = {n: y for n, y in seen.lacks.items() if masked or n == "causal"}
    if told.get("square"):
        lacks["length"] = "it needs as many"
    fixed: dict[str, Any] = {"masked": masked}
    if not masked:
        fixed |= {"mask": "keep", "mask_axes": "any"}
        lacks["mask"] = "what it says was not told"
    if names["padding"] is None or told.get("formula") != "own":
        lacks["padding"] = "it has no argument for it"
        fixed["padding"] = "keep"
    if told.get("causal"):
        lacks["causal"] = "it is causal anyway"
    asked = ("causal", "padding", *(["mask"] if masked else []))
    has = tuple(n for n in asked if n not in lacks)
    facts = {**seen.facts, "names": names, **fixed}
    return Reading(facts, seen.candidates, lacks, has)


def is_claimed(facts: Facts) -> bool:
    """Whether it is known what is claimed, or that nothing usual is."""
    return any(facts.get(name) is not None for name in CLAIMS)


def is_masked(told: Facts, names: Facts) -> bool:
    """Whether it was told what a mask says, of one that is plain attention.

    Then that is asked as of any other function of attention.
    """
    return "mask" in told and "mask" in names and not is_claimed(told)


def fallback(thing: Any, told: Facts, seen: Reading) -> Reading | None:
    """Take it for the usual linear attention, if nobody told what it is."""
    if {*CLAIMS} & told.keys():
        return None
    return seen.with_facts(formula="linear")


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it as an attention function, with its own options."""

    def mechanism(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        causal: bool = False,
        padding: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> object:
        options = dict(facts.get("call") or {})
        if padding is not None:
            if facts["layout"] == "BND":  # heads are a part of the batch
                padding = padding.repeat_interleave(q[0, ..., 0, 0].numel(), 0)
            meant = as_meant(padding, facts["padding"], q.dtype)
            options[facts["names"]["padding"]] = meant

        def with_options(*arguments: Tensor, **named: Any) -> object:
            return handed(thing, *arguments, **options, **named)

        plain = {**facts, "call": None}
        attend = attention.adapt(with_options, plain)
        return attend(q, k, v, mask=mask, causal=causal)

    return mechanism
