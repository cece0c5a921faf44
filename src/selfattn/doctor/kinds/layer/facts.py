"""What may be said of a module that attends."""

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact
from selfattn.doctor.kinds.attention import calling as attention
from selfattn.doctor.kinds.mask_meanings import TO_HIDE
from selfattn.doctor.kinds.text_layouts import LAYOUTS

FACTS = {
    "layout": Fact(
        "the axes of x",
        LAYOUTS,
    ),
    "causal": Fact(
        "whether it hides later tokens, without being told to",
        {False: "it sees them", True: "it hides them"},
    ),
    "mask": Fact(
        "what a mask says",
        TO_HIDE,
        need="mask",
    ),
    "mask_axes": Fact(
        "which axes a mask has",
        {
            "NN": "queries, keys",
            "BNN": "batch, queries, keys",
            "B1NN": "batch, 1, queries, keys",
            "BN": "batch, keys",
            "B11N": "batch, 1, 1, keys",
        },
        need="mask",
    ),
    "padding": Fact("what a mask for padding says", TO_HIDE, need="padding"),
    "packed": Fact(
        "how one matrix holds queries, keys and values",
        {
            "by part": "all queries first",
            "by head": "a head after the other",
            "by group": "a group's queries, their key, their value",
        },
    ),
    "matrices": Fact(
        "how square matrices lie that are parameters of its own",
        {"in, out": "x W", "out, in": "x Wᵀ, as in nn.Linear"},
        tried=False,
    ),
    "formula": Fact(
        "what it computes",
        {
            "plain": "softmax(q kᵀ / √d_head) v of its own projections",
            "own": "something more, of which only properties are asked",
        },
        tried=False,
        saying=sayings.WRITTEN,
    ),
    "table": attention.FACTS["table"],
    "d_model": Fact("the width of x", saying=sayings.WIDTH),
    "n_heads": Fact("how many heads it has", saying=sayings.COUNT),
    "names": Fact(
        "its names for x, context, mask, padding, causal",
        saying=sayings.names_for(
            "x", "context", "mask", "padding", "causal", "qkv"
        ),
    ),
    "projections": Fact(
        "its names for q, k, v, out, qkv or kv",
        saying=sayings.names_for("q", "k", "v", "out", "qkv", "kv"),
    ),
    "call": attention.FACTS["call"],
    "make": Fact(
        "what its class is to be called with, as a dict",
        saying=sayings.ARGUMENTS,
    ),
    "order": Fact(
        'in which order one matrix holds them, such as "kqv"',
        saying=sayings.ORDER,
    ),
    "length": Fact(
        "how many tokens its texts have, if it takes no other number",
        saying=sayings.LENGTH,
    ),
    "longest": Fact(
        "the longest sequence that it takes", saying=sayings.COUNT
    ),
    **{
        name: attention.FACTS[name]
        for name in (
            *("empty_row", "scale", "cap", "scores", "bias", "window"),
            "dropout",
        )
    },
}
