"""Loading: published weights of BERT, from a file you have.

It needs the package safetensors: ``pip install selfattn[weights]``.
"""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from selfattn.blocks import EncoderBlock
from selfattn.dot_product import Attend, fused_attention
from selfattn.layers import FeedForward, LayerNorm, gelu
from selfattn.models.config import (
    BERT,
    check_config,
    check_encoder,
    share_table,
)
from selfattn.models.embedding import Embedding
from selfattn.models.encoder import Encoder
from selfattn.models.heads import Pooler, WordHead
from selfattn.models.ties import Tied
from selfattn.models.weights import (
    Weights,
    count_blocks,
    fill,
    has,
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
BERT_NAMES = {
    r"^bert\.": "",
    r"^encoder\.layer\.": "encoder.blocks.",
    r"^embeddings\.word_embeddings\.": "encoder.embed.tokens.",
    r"^embeddings\.position_embeddings\.weight": (
        "encoder.embed.positions.table"
    ),
    r"^embeddings\.token_type_embeddings\.": "encoder.embed.segments.",
    r"^embeddings\.LayerNorm\.": "encoder.embed.norm.",
    r"\.attention\.self\.query\.": ".attention.W_q.",
    r"\.attention\.self\.key\.": ".attention.W_k.",
    r"\.attention\.self\.value\.": ".attention.W_v.",
    r"\.attention\.output\.dense\.": ".attention.W_o.",
    r"\.attention\.output\.LayerNorm\.": ".add_norm_1.norm.",
    r"\.intermediate\.dense\.": ".feed_forward.W_in.",
    r"\.output\.dense\.": ".feed_forward.W_out.",
    r"\.output\.LayerNorm\.": ".add_norm_2.norm.",
    r"^cls\.predictions\.transform\.LayerNorm\.": "words.norm.",
    r"^cls\.predictions\.transform\.": "words.",
    r"^cls\.predictions\.(decoder\.)?": "words.words.",
    r"^cls\.seq_relationship\.": "next_sentence.",
    r"^pooler\.": "pooler.",  # it is called alike
}


class Bert(Tied):
    """What a published BERT holds: an encoder, and what it was trained with.

    Args:
        encoder: with an embedding of tokens, positions and two segments.
        pooler: one vector a text, if the file has it.
        words: which word is hidden, if the file has it.
        next_sentence: whether the second text follows the first (class 0) or
            not (class 1), of the pooler's vector; if the file has it.

    Reference: Devlin et al. (2019), section 3.
    """

    AT_SCORES, AT_TABLE = "words.words", "encoder.embed.tokens"

    @checked
    def __init__(
        self,
        encoder: Encoder,
        *,
        pooler: Pooler | None = None,
        words: WordHead | None = None,
        next_sentence: nn.Linear | None = None,
    ):
        """Keep the parts."""
        super().__init__()
        self.encoder, self.pooler = encoder, pooler
        self.words, self.next_sentence = words, next_sentence


@checked
def load_bert(
    path: str | Path,
    *,
    n_heads: Positive | None = None,
    attend: Attend = fused_attention,
) -> Bert:
    """A `Bert` with the weights in a safetensors file.

    Args:
        path: the file, as published beside BERT of any size.
        n_heads: number of heads; as many as have 64 features when None. The
            file does not tell.
        attend: how its heads attend.

    Returns:
        The model, in evaluation mode, in the type of the file.

    Raises:
        ValueError: if the file lacks a weight of BERT, or has another; if a
            ``config.json`` beside it tells of another model, or of other
            heads, eps, number of blocks or sizes.

    Reference: Devlin et al. (2019), section 3.
    """
    check_config(path, BERT)
    weights = renamed(read(path), BERT_NAMES, path)
    table = "encoder.embed.tokens.weight"
    _, d_model = shape_of(table, weights, path)
    if has_words := "words.dense.weight" in weights:
        share_table("words.words.weight", table, weights, path)
    with telling(path), torch.device("meta"):
        encoder = bert_encoder(weights, path, n_heads, attend)
        check_told(path, encoder)
        model = Bert(
            encoder,
            pooler=Pooler(d_model) if has("pooler", weights) else None,
            words=WordHead(encoder.embed) if has_words else None,
            next_sentence=(
                nn.Linear(d_model, 2)
                if has("next_sentence", weights)
                else None
            ),
        )
    fill(model, weights, path)
    if model.words is not None:
        tie(model.words.words, model.encoder.embed)
    return model.eval()


def check_told(path: str | Path, encoder: Encoder) -> None:
    """Raise if a configuration beside the file tells of another BERT."""
    embed: Any = encoder.embed
    check_encoder(
        path,
        encoder,
        embed,
        max_position_embeddings=(
            "positions in the file",
            len(embed.positions.table),
        ),
        type_vocab_size=(
            "segments in the file",
            embed.segments.num_embeddings,
        ),
    )


def bert_encoder(
    weights: Weights, path: str | Path, n_heads: int | None, attend: Attend
) -> Encoder:
    """BERT's encoder in the sizes of the file; its eps is 1e-12."""
    n_tokens, d_model = shape_of("encoder.embed.tokens.weight", weights, path)
    places, _ = shape_of("encoder.embed.positions.table", weights, path)
    segments, _ = shape_of("encoder.embed.segments.weight", weights, path)
    inner = "encoder.blocks.0.feed_forward.W_in.weight"
    d_ff, _ = shape_of(inner, weights, path)
    norm = partial(LayerNorm, eps=1e-12)
    embed = Embedding(
        n_tokens,
        d_model,
        positions=LearnedPositions(places, d_model),
        n_segments=segments,
        norm=norm,
    )
    block = partial(
        EncoderBlock,
        d_model,
        heads_for(d_model, n_heads, path),
        d_ff,
        pre=False,
        norm=norm,
        multihead=partial(
            MultiHeadAttention, projection_bias=True, attend=attend
        ),
        feed_forward=partial(FeedForward, activation=gelu),
    )
    n_blocks = count_blocks(weights, "encoder.blocks.")
    return Encoder(embed, [block() for _ in range(n_blocks)])
