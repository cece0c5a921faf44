"""Loading: published weights of ViT, from a file you have.

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
from selfattn.dot_product import Attend, fused_attention
from selfattn.layers import FeedForward, LayerNorm, gelu
from selfattn.models.config import (
    VIT,
    check_config,
    check_encoder,
)
from selfattn.models.vision import PatchEmbedding, VisionTransformer
from selfattn.models.weights import (
    Weights,
    count_blocks,
    fill,
    heads_for,
    read_as,
    shape_of,
    telling,
)
from selfattn.multihead import MultiHeadAttention
from selfattn.signatures import Positive, checked

# What stands in their names, and what in ours, in this order.
VIT_NAMES = {
    r"^vit\.embeddings\.cls_token": "encoder.embed.first",
    r"^vit\.embeddings\.position_embeddings": "encoder.embed.positions.table",
    r"^vit\.embeddings\.patch_embeddings\.projection": "encoder.embed.project",
    r"^vit\.(encoder\.layer|layers)\.": "encoder.blocks.",
    r"^vit\.layernorm\.": "encoder.norm.",
    r"\.attention\.(.)_proj\.": r".attention.W_\1.",
    r"\.attention\.attention\.(.)\w+\.": r".attention.W_\1.",
    r"\.attention\.output\.dense\.": ".attention.W_o.",
    r"\.(mlp\.fc1|intermediate\.dense)\.": ".feed_forward.W_in.",
    r"\.(mlp\.fc2|output\.dense)\.": ".feed_forward.W_out.",
    r"\.layernorm_before\.": ".add_norm_1.norm.",
    r"\.layernorm_after\.": ".add_norm_2.norm.",
    r"^classifier\.": "head.",
}
EMBED = "encoder.embed"  # of a vision transformer


@checked
def load_vit(
    path: str | Path,
    *,
    n_heads: Positive | None = None,
    image_size: tuple[int, int] | None = None,
    attend: Attend = fused_attention,
) -> VisionTransformer:
    """A `VisionTransformer` with the weights of a ViT in a safetensors file.

    Args:
        path: the file, as published with a head of classes.
        n_heads: number of heads; as many as have 64 features when None. The
            file does not tell.
        image_size: height and width of its images; square when None.
        attend: how its heads attend.

    Returns:
        The model, in evaluation mode, in the type of the file.

    Raises:
        ValueError: if the file lacks a weight of ViT, or has another; if a
            ``config.json`` beside it tells of another model, or of another
            image, other heads, eps, number of blocks or sizes.

    Reference: Dosovitskiy et al. (2021), section 3.1.
    """
    check_config(path, VIT)
    weights = read_as(path, VIT_NAMES)
    n_channels, *patch = flattened(weights, path)
    names = [f"{EMBED}.{x}" for x in ("positions.table", "project.weight")]
    if image_size is None:
        side = math.isqrt(len(weights[names[0]]) - 1)
        image_size = side * patch[0], side * patch[1]
    multihead = partial(
        MultiHeadAttention, projection_bias=True, attend=attend
    )
    with telling(path), torch.device("meta"):
        embed = PatchEmbedding(
            image_size,
            (patch[0], patch[1]),
            n_channels=n_channels,
            d_model=len(weights[names[1]]),
        )
        model = vit_model(weights, path, embed, n_heads, multihead)
    check_told(path, model)
    fill(model, weights, path)
    return model.eval()


def check_told(path: str | Path, model: VisionTransformer) -> None:
    """Raise if a configuration beside the file tells of another ViT."""
    embed: Any = model.encoder.embed
    n_channels, *image_size = embed.shape
    first: Any = model.encoder.blocks[0]
    check_encoder(
        path,
        model.encoder,
        image_size=("image_size", tuple(image_size)),
        patch_size=("patch_size in the file", embed.patch_size),
        num_channels=("n_channels in the file", n_channels),
        head_dim=("d_head in the file", first.attention.d_head),
        num_labels=("classes in the file", model.head.out_features),
    )


def flattened(weights: Weights, path: str | Path) -> list[int]:
    """Make ViT's embedding a vector and two matrices, as ours are.

    Returns:
        Channels, height and width of a patch, which the file alone tells.

    Raises:
        ValueError: if the file has no such embedding.
    """
    parts = ("first", "positions.table", "project.weight")
    names = [f"{EMBED}.{part}" for part in parts]
    shapes = [tuple(weights[n].shape) if n in weights else () for n in names]
    right = [
        len(shapes[0]) == 3 and shapes[0][:2] == (1, 1),
        len(shapes[1]) == 3 and shapes[1][0] == 1 and shapes[1][1] > 1,
        len(shapes[2]) == 4,
    ]
    if not all(right) or any(0 in shape for shape in shapes):
        raise ValueError(
            "a vision transformer has a first token (1, 1, d), positions "
            "(1, n + 1, d) and a projection of patches (d, channels, height, "
            f"width), none of them empty, but {path} has {shapes}"
        )
    _, *patch = shapes[2]
    weights[names[0]] = weights[names[0]].reshape(-1)
    weights[names[1]] = weights[names[1]].flatten(0, -2)
    weights[names[2]] = weights[names[2]].flatten(1)
    return patch


def vit_model(
    weights: Weights,
    path: str | Path,
    embed: PatchEmbedding,
    n_heads: int | None,
    multihead: Callable[..., nn.Module],
) -> VisionTransformer:
    """ViT in the sizes of the file, without numbers; its eps is 1e-12."""
    d_model = embed.project.out_features
    inner = "encoder.blocks.0.feed_forward.W_in.weight"
    d_ff, _ = shape_of(inner, weights, path)
    n_classes, _ = shape_of("head.weight", weights, path)
    norm = partial(LayerNorm, eps=1e-12)
    block = partial(
        EncoderBlock,
        d_model,
        heads_for(d_model, n_heads, path),
        d_ff,
        pre=True,
        norm=norm,
        multihead=multihead,
        feed_forward=partial(FeedForward, activation=gelu),
    )
    n_blocks = count_blocks(weights, "encoder.blocks.")
    return VisionTransformer(
        embed,
        [block() for _ in range(n_blocks)],
        n_classes,
        norm=norm(d_model),
    )
