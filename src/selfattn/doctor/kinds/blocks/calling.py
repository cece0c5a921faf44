"""How blocks are called, and what can be read off one."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.copying import copy_of
from selfattn.doctor.kind import Fact, Reading, UnclearError
from selfattn.doctor.kinds import text_layouts
from selfattn.doctor.kinds.attention import calling as attention
from selfattn.doctor.kinds.blocks import handing_over, told_names
from selfattn.doctor.kinds.mask_meanings import MEANINGS, as_meant
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

ORDERS = {
    "pre": "before their sublayers",
    "post": "behind the sums",
    "sandwich": "before and behind each sublayer",
}
FACTS = {
    "norms": Fact(
        "the names of its norms, in the order of the sublayers",
        saying=sayings.NAMES,
    ),
    "feed_forward": Fact(
        "the name of its feed-forward network", saying=sayings.NAME
    ),
    "flat_attention": Fact(
        "the names of the maps for q, k, v and out, if they lie in the block",
        saying=sayings.NAMES,
    ),
    "flat_feed_forward": Fact(
        "the first map, the bend and the last map, if they lie in the block",
        saying=sayings.BENT,
    ),
    "names": told_names.fact("x"),
    "call": attention.FACTS["call"],
    "length": Fact(
        "how many tokens its texts have, if it takes no other number",
        saying=sayings.LENGTH,
    ),
    "n_heads": Fact(
        "how many heads its attention has, if that lies flat",
        saying=sayings.COUNT,
    ),
    "dropout": Fact(
        "the share of what it drops in training", saying=sayings.SHARE
    ),
    "order": Fact("where the norms stand", ORDERS),
    "formula": Fact(
        "how it joins its parts",
        {
            "plain": "each sublayer is added, and normed",
            "own": "otherwise, and of it only properties are asked",
        },
        tried=False,
        saying=sayings.WRITTEN,
    ),
    "path": Fact(
        "what becomes of x on its way past the sublayers, likewise",
        {
            "clear": "nothing; it is normed at an end at most",
            "free": "whatever the block means: it is not asked",
        },
        tried=False,
    ),
    "causal": Fact(
        "whether, with a formula of its own, it hides later tokens",
        {False: "it sees them", True: "it hides them"},
        tried=False,
    ),
    "padding": Fact(
        "what its mask says, if that is for padding, (batch, tokens)",
        {name: MEANINGS[name] for name in ("keep", "block")},
        tried=False,
        need="padding",
    ),
    "layout": Fact(
        "the axes of x",
        text_layouts.LAYOUTS,
        tried=False,
    ),
    "mask": Fact(
        "what a mask says",
        MEANINGS,
        need="mask",
    ),
    "scale": Fact(
        "what multiplies the scores of its attention", saying=sayings.NUMBER
    ),
    "inside": Fact(
        "whether to look at the attention inside: if all else is well",
        saying=sayings.FLAG,
    ),
}


def prepare(thing: Any, facts: Facts) -> Any:
    """A copy that is evaluated, so that nothing is dropped.

    Its gains and shifts are stirred: when they are new, all norms are alike,
    and nobody could tell which stands where. So are maps that are zero yet,
    which would hide all that comes before them.
    """
    block = copy_of(thing).eval()
    with torch.no_grad():
        for seed, parameter in enumerate(block.parameters()):
            if parameter.ndim == 1:
                n = len(parameter)
                parameter += numbers(n, seed=seed).to(parameter) / 4
            elif parameter.ndim > 1 and not parameter.any():
                new = numbers(*parameter.shape, seed=seed).to(parameter)
                parameter += new / parameter.shape[-1] ** 0.5
    return block


def read(
    thing: Any,
    mask_names: Sequence[str],
    told: Facts,
    n_texts: int = 1,
    own_mask: bool = False,
) -> Reading:
    """What can be read off a block: the names of its mask, and the order.

    Who has a mask of which nothing is known may mean anything by it.

    Args:
        thing: the block.
        mask_names: what others call its mask, the most common first.
        told: the facts that were told.
        n_texts: how many it takes before: x, and perhaps a context.
        own_mask: whether it has another mask, for what is causal.
    """
    if not isinstance(thing, nn.Module):
        raise UnclearError(
            "A block is examined with its weights: hand over a module, "
            "made and ready to be called."
        )
    told_names.check(thing.forward, told)
    names = told_names.masks_of(thing, mask_names, told, n_texts)
    seen: Any = told_names.apart(names, told) | order_kept(thing)
    both = "padding_name" in seen
    if not own_mask and (not names or (told.get("padding") and not both)):
        seen["mask"] = "keep"
    torchs = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
    if isinstance(thing, torchs):
        seen["mask"] = "block"
        first = thing.self_attn.batch_first
        seen["layout"] = "BND" if first else "NBD"
    elif type(thing).__module__.startswith("selfattn."):
        seen["mask"] = "keep"
    seen |= said(names, told)
    seen |= placed(told.get("order") or seen.get("order"))
    open_ = in_either_layout(thing, {**seen, **told})
    lacks = told_names.lacking(names, told, both, own_mask)
    return Reading(seen, candidates=open_, lacks=lacks)


def said(names: Sequence[str], told: Facts) -> dict[str, bool]:
    """Whether it was told how its parts are joined, and what its mask says."""
    by_parts = {"order", "norms"} & told.keys()
    known = {"by_parts": by_parts, "mask_told": names and "mask" in told}
    return {name: True for name, fact in known.items() if fact}


def in_either_layout(block: nn.Module, known: Facts) -> dict[str, list[str]]:
    """Where its tokens may lie, if its attention takes them before texts.

    So the block may do, too; or it turns what it hands over.
    """
    either = "layout" not in known and tokens_first(block)
    return {"layout": [*text_layouts.TEXTS]} if either else {}


def tokens_first(block: nn.Module) -> bool:
    """Whether its attention is PyTorch's, and takes tokens before texts."""
    found = [
        module.batch_first
        for module in block.modules()
        if isinstance(module, nn.MultiheadAttention)
    ]
    return bool(found) and not any(found)


def order_kept(block: nn.Module) -> dict[str, str]:
    """Where its norms stand, if it or a part of it has an attribute for that;
    of several, the last.
    """
    kept = [
        getattr(module, attribute, None)
        for attribute in ("norm_first", "pre")
        for module in block.modules()
    ]
    said = [found for found in kept if isinstance(found, bool)]
    return {"order": "pre" if said[-1] else "post"} if said else {}


def placed(order: str | None) -> dict[str, str]:
    """Where the norms were said to stand, for one of its own formula."""
    if order is None:
        return {}
    return {"placed": order if order in ("post", "sandwich") else "clear"}


def hides_by_itself(facts: Facts) -> bool | None:
    """Whether it was told to hide later tokens by itself.

    Who says that it does not, of one that takes a mask for them, has said
    nothing of what it does under that mask, which it is handed.
    """
    causal: bool | None = facts.get("causal")
    return None if causal is False and facts.get("own_mask") else causal


def is_its_own(facts: Facts) -> bool:
    """Whether a block is asked what holds of all, and not for its parts: its
    author said so, or they were looked for and not found.
    """
    return facts.get("formula") == "own" or "how" in facts


def of_attention(facts: Facts) -> Facts:
    """What is known of the attention of a block of which this is known."""
    told = {name: facts.get(name) for name in ("layout", "scale", "n_heads")}
    known = {name: fact for name, fact in told.items() if fact is not None}
    return {"layout": "BND", **known}


def as_wanted(
    call: Callable[..., object], masks: dict[str, Tensor], batch: int
) -> object:
    """What a call gives that takes masks of ours, (n, n_k), by these names.

    If it cannot take one for all texts, it is given one for each, and if not
    that, one for each with an axis for heads.
    """
    trouble: Exception | None = None
    for axes in ((), (batch,), (batch, 1)) if masks else ((),):
        try:
            return call(
                **{n: m.expand(*axes, *m.shape) for n, m in masks.items()}
            )
        except Exception as error:
            trouble = trouble or error
    raise trouble or ValueError


def padded(facts: Facts, padding: Tensor, x: Tensor) -> dict[str, Tensor]:
    """A mask for padding of ours, (batch, n_k), under its name."""
    name: Any = facts.get("padding_name") or facts.get("mask_name")
    return {name: as_meant(padding, facts["padding"], x.dtype)}


def called(
    thing: Any, facts: Facts, x: Tensor, *others: Tensor, **given: Any
) -> object:
    """Call a block in its own layout; of output and weights, the output."""
    layout = facts.get("layout") or "BND"
    # A picture may be told of in a text.
    beside = "BND" if layout in text_layouts.PICTURES else layout
    texts = [text_layouts.laid_out(x, layout)]
    texts += [text_layouts.laid_out(text, beside) for text in others]
    besides = handing_over.beside(texts, facts)
    placed, named = told_names.by_them(texts, facts)
    given = {**named, **besides, **(facts.get("call") or {}), **given}
    output = handing_over.over(thing, placed, given)
    if isinstance(output, tuple):
        output = output[0]
    if isinstance(output, Tensor):
        return text_layouts.read_back(output, layout)
    return output
