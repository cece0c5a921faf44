"""Positions: telling attention where things are.

Attention treats its keys as a set: permute the tokens and the outputs are
permuted with them. Order must be told, and there are three places to tell
it: in what enters the layer (`absolute`), in queries and keys (`rotary`), or
in the scores (`relative`).

Everywhere the last query sits on the last key, as in `masks.indices`, and
``offset`` is the position of the first token, for models with a cache.
"""

from selfattn.positions.absolute import LearnedPositions, sinusoidal
from selfattn.positions.relative import (
    ShawAttention,
    T5Bias,
    TransformerXLAttention,
    alibi_bias,
    alibi_slopes,
    t5_bucket,
)
from selfattn.positions.rotary import (
    halves_to_pairs,
    pairs_to_halves,
    rope,
    rope_halves,
)

__all__ = [
    "LearnedPositions",
    "ShawAttention",
    "T5Bias",
    "TransformerXLAttention",
    "alibi_bias",
    "alibi_slopes",
    "halves_to_pairs",
    "pairs_to_halves",
    "rope",
    "rope_halves",
    "sinusoidal",
    "t5_bucket",
]
