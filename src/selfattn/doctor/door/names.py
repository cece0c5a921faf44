"""What the name of a thing says about its kind, and that of an argument."""

import re

# By kind: a name that has one of these words says that it is of the kind.
WORDS = {
    "softmax": "softmax",
    "rope": "rope|rotary|apply_rot|rotate(?!_half|_every)",
    "rms-norm": "rms",
    "layer-norm": "layer_?norm|layernorm",
    "causal-mask": "causal|look_?ahead|subsequent|future|triangular",
    "padding-mask": "pad|length",
    "sinusoidal": "sinus|encoding|positions?_table|timing",
    "positions": "position|encoding|pos_emb",
    "efficient": (
        "window|local|band|slid|block|sparse|chunk|tile|flash|linear|kernel"
        "|performer|favor|stream|efficient|lsh|reform|memory|parts|splits"
        "|dilat|stride|ring_|feature_map"
    ),
    "attention": "att|lookup",
    "self-attention": "att",
    "cross-attention": "cross",
    "encoder-block": "block|layer|encoder",
    "decoder-block": "block|layer|decoder",
    "cached-decoder": "cache|decod",
}
# The kinds whose names hardly anything else has.
PLAIN = (
    *("softmax", "rope", "rms-norm", "layer-norm", "sinusoidal"),
    *("causal-mask", "padding-mask"),
)
MASKS = re.compile("mask|pad|causal|allow|valid|length|bias|flag|drop|train")
OF_LENGTHS = re.compile("l2|scale_norm|unit_norm")  # norms not of ours
NETWORKS = re.compile("feed_?forward|ffn|mlp")  # in which no token is mixed
SECOND = re.compile(
    "context|memory|cross|encoder_(?:hidden|out|state)"
    "|latents|media|(?:^|_)kv(?:_|$)"
)
CACHES = re.compile(r"cache|past|(?:^|_)(?:state|prev|kept|memo)$")


def snake(name: str) -> str:
    """A name in small letters, with its words apart.

    >>> snake("MultiHeadAttention"), snake("RMSNorm")
    ('multi_head_attention', 'rms_norm')
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"(?<=[A-Z])(?=[A-Z][a-z])", "_", apart).lower()


def says(name: str, kind: str) -> bool:
    """Whether a name speaks for a kind.

    >>> says("RMSNorm", "rms-norm"), says("rotate_half", "rope")
    (True, False)
    """
    return re.search(WORDS[kind], snake(name)) is not None
