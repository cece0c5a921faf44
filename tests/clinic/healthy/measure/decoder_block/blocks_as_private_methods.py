"""PyTorch's own signature: six arguments, sublayers as private methods."""

import torch.nn.functional as F
from torch import Tensor, nn


class TransformerDecoderLayer(nn.Module):
    """Of the library's, what we need, to take it apart."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        kwargs = {"dropout": dropout, "batch_first": True}
        self.norm_first = norm_first
        self.self_attn = nn.MultiheadAttention(d_model, nhead, **kwargs)
        self.cross_attn = nn.MultiheadAttention(d_model, nhead, **kwargs)
        self.linear1 = nn.Linear(d_model, dim_feedforward)
        self.linear2 = nn.Linear(dim_feedforward, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        own = (tgt_mask, tgt_key_padding_mask)
        other = (memory_mask, memory_key_padding_mask)
        x = tgt
        if self.norm_first:
            x = x + self._look_back(self.norm1(x), *own)
            x = x + self._look_over(self.norm2(x), memory, *other)
            x = x + self._think(self.norm3(x))
        else:
            x = self.norm1(x + self._look_back(x, *own))
            x = self.norm2(x + self._look_over(x, memory, *other))
            x = self.norm3(x + self._think(x))
        return x

    def _look_back(self, x, mask, padding):
        out, _ = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding
        )
        return self.dropout(out)

    def _look_over(self, x, memory, mask, padding):
        out, _ = self.cross_attn(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding
        )
        return self.dropout(out)

    def _think(self, x):
        inner = self.dropout(F.relu(self.linear1(x)))
        return self.dropout(self.linear2(inner))


PATIENT = TransformerDecoderLayer(12, 3, 17, norm_first=True)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "own_mask": "tgt_mask",
    "mask": "block",
    "padding": "block",
    "self_attention": "self_attn",
    "cross_attention": "cross_attn",
    "flat_feed_forward": ("linear1", "relu", "linear2"),
    "norms": ["norm1", "norm2", "norm3"],
    "n_heads": 3,
    "dropout": 0.1,
}
INPUTS = {
    "tgt": "b n 12",
    "memory": "b m 12",
    "tgt_mask": "future n n",
    "tgt_key_padding_mask?": "padding b n",
    "memory_key_padding_mask?": "padding b m",
}
OTHER_INPUTS = (
    {
        "tgt": "b n 12",
        "memory": "b m 12",
        "tgt_mask": "future n n",
        "memory_mask?": "block n m",
    },
)
