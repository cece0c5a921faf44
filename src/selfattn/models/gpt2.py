"""Loading: published weights of GPT-2, from a file you have.

It needs the package safetensors: ``pip install selfattn[weights]``.
"""

from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from selfattn.blocks import EncoderBlock
from selfattn.dot_product import Attend, fused_attention
from selfattn.layers import FeedForward, LayerNorm
from selfattn.models.config import (
    GPT2,
    check_config,
    check_sizes,
    share_table,
    sizes_in_file,
)
from selfattn.models.decoder import Decoder
from selfattn.models.embedding import Embedding
from selfattn.models.weights import (
    Weights,
    count_blocks,
    fill,
    heads_for,
    read,
    renamed,
    shape_of,
    telling,
    tie,
)
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import LearnedPositions
from selfattn.signatures import Positive, checked

# What stands in their names, and what in ours, in this order.
GPT2_NAMES = {
    r"^transformer\.": "",
    r"^wte\.": "embed.tokens.",
    r"^wpe\.weight": "embed.positions.table",
    r"^h\.": "blocks.",
    r"\.ln_(\d)\.": r".add_norm_\1.norm.",
    r"^ln_f\.": "norm.",
    r"\.attn\.c_proj\.": ".attention.W_o.",
    r"\.mlp\.c_fc\.": ".feed_forward.W_in.",
    r"\.mlp\.c_proj\.": ".feed_forward.W_out.",
    r"^lm_head\.": "head.",
}


@checked
def load_gpt2(
    path: str | Path,
    *,
    n_heads: Positive | None = None,
    attend: Attend = fused_attention,
) -> Decoder:
    """A `Decoder` with the weights of a GPT-2 in a safetensors file.

    Args:
        path: the file, as published beside GPT-2 of any size.
        n_heads: number of heads; as many as have 64 features when None. The
            file does not tell.
        attend: how its heads attend.

    Returns:
        The model, in evaluation mode, in the type of the file.

    Raises:
        ValueError: if the file lacks a weight of GPT-2, or has another; if a
            ``config.json`` beside it tells of another model, or of other
            heads, eps, number of blocks or sizes.

    Reference: Radford et al. (2019), section 2.3.
    """
    check_config(path, GPT2)
    weights = split_qkv(renamed(read(path), GPT2_NAMES, path), path)
    table = "embed.tokens.weight"
    shape_of(table, weights, path)
    share_table("head.weight", table, weights, path)
    # Shapes alone: the numbers come from the file.
    with telling(path), torch.device("meta"):
        model = gpt2_decoder(weights, path, n_heads, attend)
    block: Any = model.blocks[0]
    places, _ = shape_of("embed.positions.table", weights, path)
    check_sizes(
        path,
        n_head=("n_heads", block.attention.n_heads),
        layer_norm_epsilon=("eps", block.add_norm_1.norm.eps),
        n_layer=("the number of blocks", len(model.blocks)),
        n_positions=("positions in the file", places),
        **sizes_in_file(block, "n_embd", "n_inner", model.embed),
    )
    fill(model, weights, path)
    tie(model.head, model.embed)
    return model.eval()


def gpt2_decoder(
    weights: Weights, path: str | Path, n_heads: int | None, attend: Attend
) -> Decoder:
    """GPT-2 in the sizes of the file, without numbers."""
    n_tokens, d_model = shape_of("embed.tokens.weight", weights, path)
    places, _ = shape_of("embed.positions.table", weights, path)
    d_ff, _ = shape_of("blocks.0.feed_forward.W_in.weight", weights, path)
    block = partial(
        EncoderBlock,
        d_model,
        heads_for(d_model, n_heads, path),
        d_ff,
        pre=True,
        multihead=partial(
            MultiHeadAttention, projection_bias=True, attend=attend
        ),
        feed_forward=partial(
            FeedForward, activation=partial(F.gelu, approximate="tanh")
        ),
    )
    positions = LearnedPositions(places, d_model)
    return Decoder(
        Embedding(n_tokens, d_model, positions=positions),
        [block() for _ in range(count_blocks(weights, "blocks."))],
        norm=LayerNorm(d_model),
    )


def split_qkv(weights: Weights, path: str | Path) -> Weights:
    """GPT-2's matrices the way ours stand, and its c_attn cut into three.

    It stores them as they multiply a row, (d_in, d_out); `torch.nn.Linear`
    the other way round. Each lies in memory of its own, row by row, else
    safetensors would not save the model again.

    Raises:
        ValueError: if a c_attn cannot be cut into three.
    """
    ours = {}
    for name, weight in weights.items():
        if name.startswith("blocks.") and weight.ndim == 2:
            weight = weight.T
        before, fused, after = name.partition("attn.c_attn.")
        if not fused:
            ours[name] = weight.contiguous()
            continue
        if weight.ndim == 0 or len(weight) % 3:
            raise ValueError(
                "c_attn must hold three matrices side by side, but for "
                f"{name} {path} has {tuple(weight.shape)}"
            )
        for letter, part in zip("qkv", weight.chunk(3), strict=True):
            own = part.clone(memory_format=torch.contiguous_format)
            ours[f"{before}attention.W_{letter}.{after}"] = own
    return ours
