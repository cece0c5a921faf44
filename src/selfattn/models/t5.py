"""Loading: published weights of T5, from a file you have.

It needs the package safetensors: ``pip install selfattn[weights]``.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.dot_product import Attend, fused_attention
from selfattn.layers import FeedForward, RMSNorm
from selfattn.models.config import (
    T5,
    check_config,
    check_sizes,
    sizes_in_file,
    yes_or_no,
)
from selfattn.models.embedding import Embedding
from selfattn.models.encoder import Encoder
from selfattn.models.encoder_decoder import EncoderDecoder
from selfattn.models.weights import (
    Weights,
    count_blocks,
    fill,
    read_as,
    same,
    shape_of,
    telling,
)
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import T5Bias
from selfattn.signatures import Positive, checked

# What stands in their names, and what in ours, in this order.
T5_NAMES = {
    r"^encoder\.block\.0\.\S+relative_\w+\.weight": "encoder.relative.table",
    r"^decoder\.block\.0\.\S+relative_\w+\.weight": "relative.table",
    r"^((en|de)coder\.embed_tokens|shared)": "encoder.embed.tokens",
    r"^lm_head": "head",
    r"^decoder\.": "",
    r"final_layer_norm": "norm",
    r"block\.": "blocks.",
    r"\.layer\.\d\.SelfAttention\.(.)\.": r".attention.W_\1.",
    r"\.layer\.\d\.EncDecAttention\.(.)\.": r".cross.W_\1.",
    r"\.layer\.\d\.DenseReluDense\.wi\.": ".feed_forward.W_in.",
    r"\.layer\.\d\.DenseReluDense\.wo\.": ".feed_forward.W_out.",
    r"\.layer\.0\.layer_norm\.": ".add_norm_1.norm.",
    r"\.layer\.1\.layer_norm\.": ".add_norm_2.norm.",
    r"\.layer\.2\.layer_norm\.": ".add_norm_3.norm.",
}
TABLE = "encoder.embed.tokens.weight"
DISTANCES = "encoder.relative.table"
INNER = "blocks.0.feed_forward.W_in.weight"


@checked
def load_t5(
    path: str | Path,
    *,
    max_distance: Positive = 128,
    attend: Attend = fused_attention,
) -> EncoderDecoder:
    """An `EncoderDecoder` with the weights of a T5 in a safetensors file.

    Its heads and buckets are told by its tables of distances. The published
    model divides its last vectors by √d_model when the scores are made with
    the embedding's table, unless its configuration says otherwise: here the
    gain of the last norm does so.

    Args:
        path: the file, as published beside T5 small to large. Later ones
            (v1.1) have a gate, and are refused.
        max_distance: the distance from which on all are alike.
        attend: how its heads attend; it is given a scale of 1.

    Returns:
        The model, in evaluation mode, in the type of the file.

    Raises:
        ValueError: if the file lacks a weight of T5, or has another; if a
            ``config.json`` beside it tells of another model, or of another
            max_distance, eps, number of blocks or sizes.

    Reference: Raffel et al. (2020), section 2.1.
    """
    check_config(path, T5)
    weights = read_as(path, T5_NAMES)
    _, d_model = shape_of(TABLE, weights, path)
    weights.setdefault("head.weight", weights[TABLE])
    tied = same(weights["head.weight"], weights[TABLE])
    divided = yes_or_no(path, "scale_decoder_outputs", tied)  # null: no
    if divided and "norm.gain" in weights:
        weights["norm.gain"] = weights["norm.gain"] * d_model**-0.5
    undivided: Any = attend  # not every mechanism takes a scale
    undivided = partial(undivided, scale=1.0)
    multihead = partial(MultiHeadAttention, attend=undivided)
    with telling(path), torch.device("meta"):
        model = t5_model(weights, path, multihead, max_distance, tied)
    check_told(path, model, max_distance, tied)
    fill(model, weights, path)
    return model.eval()


def check_told(
    path: str | Path, model: EncoderDecoder, max_distance: int, tied: bool
) -> None:
    """Raise if a configuration beside the file tells of another T5."""
    block: Any = model.blocks[0]
    relative: Any = model.relative
    check_sizes(
        path,
        num_heads=("n_heads", block.attention.n_heads),
        d_kv=("d_head in the file", block.attention.d_head),
        relative_attention_num_buckets=(
            "n_buckets in the file",
            len(relative.table),
        ),
        relative_attention_max_distance=("max_distance", max_distance),
        layer_norm_epsilon=("eps", block.add_norm_1.norm.eps),
        tie_word_embeddings=("tied", tied),
        num_layers=("blocks that read", len(model.encoder.blocks)),
        num_decoder_layers=("blocks that write", len(model.blocks)),
        **sizes_in_file(block, "d_model", "d_ff", model.embed),
    )


def t5_model(
    weights: Weights,
    path: str | Path,
    multihead: Callable[..., nn.Module],
    max_distance: int,
    tied: bool,
) -> EncoderDecoder:
    """T5 in the sizes of the file, without numbers."""
    n_tokens, d_model = shape_of(TABLE, weights, path)
    n_buckets, n_heads = shape_of(DISTANCES, weights, path)
    sizes = d_model, n_heads, shape_of(INNER, weights, path)[0]
    options: dict[str, Any] = {"multihead": multihead, "norm": RMSNorm}
    options["feed_forward"] = partial(FeedForward, bias=False)
    far = partial(T5Bias, n_buckets=n_buckets, max_distance=max_distance)
    embed = Embedding(n_tokens, d_model)
    reads = range(count_blocks(weights, "encoder.blocks."))
    writes = range(count_blocks(weights, "blocks."))
    encoder = Encoder(
        embed,
        [EncoderBlock(*sizes, pre=True, **options) for _ in reads],
        norm=RMSNorm(d_model),
        relative=far(n_heads),
    )
    return EncoderDecoder(
        encoder,
        embed,
        [DecoderBlock(*sizes, pre=True, **options) for _ in writes],
        norm=RMSNorm(d_model),
        relative=far(n_heads, causal=True),
        tied=tied,
    )
