"""Loading: published weights of Llama, from a file you have.

It needs the package safetensors: ``pip install selfattn[weights]``.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from selfattn.blocks import EncoderBlock
from selfattn.bound import is_of_the_book, unbound
from selfattn.dot_product import Attend, fused_attention
from selfattn.layers import RMSNorm, SwiGLU
from selfattn.models.config import (
    LLAMA,
    check_config,
    check_sizes,
    share_table,
    sizes_in_file,
)
from selfattn.models.decoder import Decoder
from selfattn.models.embedding import Embedding
from selfattn.models.weights import (
    Weights,
    check_above,
    check_type,
    count_blocks,
    fill,
    heads_for,
    read,
    renamed,
    shape_of,
    telling,
    tie,
    used,
)
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import rope_halves
from selfattn.signatures import Positive, checked

# What stands in their names, and what in ours, in this order.
LLAMA_NAMES = {
    r"^model\.embed_tokens": "embed.tokens",
    r"^model\.layers\.": "blocks.",
    r"^model\.norm\.": "norm.",
    r"\.self_attn\.(.)_proj\.": r".attention.W_\1.",
    r"\.mlp\.gate_proj\.": ".feed_forward.W_gate.",
    r"\.mlp\.up_proj\.": ".feed_forward.W_in.",
    r"\.mlp\.down_proj\.": ".feed_forward.W_out.",
    r"\.input_layernorm\.": ".add_norm_1.norm.",
    r"\.post_attention_layernorm\.": ".add_norm_2.norm.",
    r"^lm_head\.": "head.",
}


@checked
def load_llama(
    path: str | Path,
    *,
    n_heads: Positive,
    eps: float = 1e-5,
    base: float = 10_000.0,
    attend: Attend = fused_attention,
) -> Decoder:
    """A `Decoder` with the weights of a Llama in a safetensors file.

    Args:
        path: the file; parts of a model that is in several are put together
            first.
        n_heads: number of query heads, which the file does not tell; key and
            value heads follow from the shapes.
        eps: of the norms; 1e-5 since Llama 2, 1e-6 before.
        base: of the rotation: ``rope_theta`` in its configuration.
        attend: how its heads attend. A window, as the first Mistral has
            one, is bound to it: ``partial(sliding_window_attention, ...)``.

    Returns:
        The model, in evaluation mode, in the type of the file.

    Raises:
        ValueError: if the file lacks a weight of Llama, or has another; if
            it holds the angles of a rotation by another base or number of
            heads; if a ``config.json`` beside it tells of another model, of
            other heads, eps, base, window, number of blocks or sizes, or
            cannot be read. Without one, only the file itself is asked.

    Reference: Touvron et al. (2023), section 2.2.
    """
    check_above(eps=eps, base=base)
    check_config(path, LLAMA)
    found = read(path)
    weights = renamed(used(found), LLAMA_NAMES, path)
    table = "embed.tokens.weight"
    _, d_model = shape_of(table, weights, path)
    share_table("head.weight", table, weights, path)
    check_angles(found, d_model // n_heads, base, path)
    multihead = partial(
        MultiHeadAttention,
        rotate=partial(rope_halves, base=base),
        attend=attend,
    )
    norm = partial(RMSNorm, eps=eps)
    # Shapes alone: the numbers come from the file.
    with telling(path), torch.device("meta"):
        model = llama_decoder(weights, path, n_heads, norm, multihead)
    check_told(path, model, eps, base)
    fill(model, weights, path)
    tie(model.head, model.embed)
    return model.eval()


def check_told(
    path: str | Path, model: Decoder, eps: float, base: float
) -> None:
    """Raise if a configuration beside the file tells of another Llama."""
    block: Any = model.blocks[0]
    window = window_of(block.attention.attend)
    if window != ():
        named = ("the window that attend binds", window)
        check_sizes(path, sliding_window=named)
    check_sizes(
        path,
        num_attention_heads=("n_heads", block.attention.n_heads),
        num_key_value_heads=("n_kv_heads", block.attention.n_kv_heads),
        rms_norm_eps=("eps", eps),
        rope_theta=("base", base),
        num_hidden_layers=("the number of blocks", len(model.blocks)),
        head_dim=("d_head in the file", block.attention.d_head),
        **sizes_in_file(
            block, "hidden_size", "intermediate_size", model.embed
        ),
    )


def window_of(attend: Any) -> Any:
    """The window that a mechanism binds: None for one of the book's that has
    none, and () where nobody can tell, as of a mechanism of somebody's.

    >>> window_of(partial(fused_attention, scale=1.0)), window_of(max)
    (None, ())
    """
    mechanism, bound = unbound(attend)
    if "window" in bound:
        return bound["window"]
    if not is_of_the_book(mechanism):
        return ()
    # What ranks do with heads, another mechanism does with each.
    return window_of(bound["attend"]) if "attend" in bound else None


def check_angles(
    found: Weights, d_head: int, base: float, path: str | Path
) -> None:
    """Raise if a file holds the angles of another rotation."""
    steps = torch.arange(0, d_head, 2, device="cpu")  # as those of a file
    wanted = base ** -(steps.double() / max(d_head, 1))
    for name, angles in found.items():
        if not name.endswith("rotary_emb.inv_freq"):
            continue
        check_type({name: angles}, path)
        rounded = max(1e-5, 2 * torch.finfo(angles.dtype).eps)
        if angles.shape != wanted.shape or not torch.allclose(
            angles.double(), wanted, rtol=rounded, atol=0.0
        ):
            raise ValueError(
                "n_heads and base must be those of the file, but its angles "
                f"are others: for {name} {path} has {shown(angles)}, and "
                f"base={base} with heads {d_head} wide is {shown(wanted)}"
            )


def shown(angles: torch.Tensor) -> str:
    """Some angles in few words: how many, and the smallest."""
    least = float(angles.double().min()) if angles.numel() else math.nan
    return f"{tuple(angles.shape)} down to {least:.4g}"


def check_kv_heads(
    d_kv: int, n_kv_heads: int, d_model: int, n_heads: int, path: str | Path
) -> None:
    """Raise unless keys have whole heads, that share those of queries."""
    if n_kv_heads * (d_model // n_heads) != d_kv or n_heads % n_kv_heads:
        raise ValueError(
            "keys and values must have whole heads, of which each serves as "
            f"many of queries, but in {path} {n_heads} heads of queries are "
            f"{d_model // n_heads} wide each and keys {d_kv} in all"
        )


def llama_decoder(
    weights: Weights,
    path: str | Path,
    n_heads: int,
    norm: Callable[[int], nn.Module],
    multihead: Callable[..., nn.Module],
) -> Decoder:
    """Llama in the sizes of the file, without numbers."""
    n_tokens, d_model = shape_of("embed.tokens.weight", weights, path)
    d_kv, _ = shape_of("blocks.0.attention.W_k.weight", weights, path)
    d_ff, _ = shape_of("blocks.0.feed_forward.W_in.weight", weights, path)
    n_heads = heads_for(d_model, n_heads, path)
    n_kv_heads = max(1, d_kv * n_heads // d_model)
    check_kv_heads(d_kv, n_kv_heads, d_model, n_heads, path)
    block = partial(
        EncoderBlock,
        d_model,
        n_heads,
        d_ff,
        pre=True,
        norm=norm,
        multihead=partial(multihead, n_kv_heads=n_kv_heads),
        feed_forward=SwiGLU,
    )
    return Decoder(
        Embedding(n_tokens, d_model),
        [block() for _ in range(count_blocks(weights, "blocks."))],
        norm=norm(d_model),
        tied=False,
    )
