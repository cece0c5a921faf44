"""To find things in pictures: queries and keys have positions, values none."""

from torch import Tensor, nn


def with_pos_embed(tensor: Tensor, pos: Tensor | None) -> Tensor:
    return tensor if pos is None else tensor + pos


class ObjectQueries(nn.Module):
    """Queries of objects look at the memory of a picture; time comes first."""

    def __init__(self, d_model: int, nhead: int, dropout: float = 0.1):
        super().__init__()
        self.multihead_attn = nn.MultiheadAttention(
            d_model, nhead, dropout=dropout
        )

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        memory_key_padding_mask: Tensor | None = None,
        pos: Tensor | None = None,
        query_pos: Tensor | None = None,
    ) -> Tensor:
        seen, _ = self.multihead_attn(
            query=with_pos_embed(tgt, query_pos),
            key=with_pos_embed(memory, pos),
            value=memory,
            key_padding_mask=memory_key_padding_mask,
            need_weights=False,
        )
        return seen


PATIENT = ObjectQueries(12, 4).eval()
FACTS = {
    "layout": "NBD",
    "padding": "block",
    "names": {
        "x": "tgt",
        "context": "memory",
        "padding": "memory_key_padding_mask",
    },
    "packed": "by part",
    "projections": {
        "qkv": "multihead_attn.in_proj_weight",
        "out": "multihead_attn.out_proj",
    },
    "d_model": 12,
    "n_heads": 4,
    "dropout": 0.1,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "tgt": "n b 12",
    "memory": "m b 12",
    "memory_key_padding_mask?": "padding b m",
    "pos?": "m b 12",
    "query_pos?": "n b 12",
}
