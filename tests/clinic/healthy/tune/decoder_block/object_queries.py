"""Finding objects: queries see each other both ways, places are added."""

from torch import Tensor, nn


def placed(x: Tensor, where: Tensor | None) -> Tensor:
    return x if where is None else x.add(where)


class ObjectDecoderLayer(nn.Module):
    def __init__(self, d_model=12, nhead=3, dim_feedforward=18, dropout=0.1):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, nhead, dropout)
        self.multihead_attn = nn.MultiheadAttention(d_model, nhead, dropout)
        self.linear1 = nn.Linear(d_model, dim_feedforward)
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(dim_feedforward, d_model)
        for i in (1, 2, 3):
            self.add_module(f"norm{i}", nn.LayerNorm(d_model))
            self.add_module(f"dropout{i}", nn.Dropout(dropout))
        self.activation = nn.ReLU()

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        memory_key_padding_mask: Tensor | None = None,
        pos: Tensor | None = None,
        query_pos: Tensor | None = None,
    ) -> Tensor:
        q = k = placed(tgt, query_pos)
        heard, _ = self.self_attn(q, k, value=tgt)
        tgt = self.norm1(tgt + self.dropout1(heard))
        seen, _ = self.multihead_attn(
            query=placed(tgt, query_pos),
            key=placed(memory, pos),
            value=memory,
            key_padding_mask=memory_key_padding_mask,
        )
        tgt = self.norm2(tgt + self.dropout2(seen))
        inner = self.dropout(self.activation(self.linear1(tgt)))
        return self.norm3(tgt + self.dropout3(self.linear2(inner)))


PATIENT = ObjectDecoderLayer()
FACTS = {
    "order": "post",
    "formula": "own",
    "causal": False,
    "layout": "NBD",
    "padding": "block",
    "self_attention": "self_attn",
    "cross_attention": "multihead_attn",
    "flat_feed_forward": ("linear1", "activation", "linear2"),
    "norms": ["norm1", "norm2", "norm3"],
    "n_heads": 3,
    "dropout": 0.1,
}
INPUTS = {
    "tgt": "n b 12",
    "memory": "m b 12",
    "memory_key_padding_mask?": "padding b m",
    "pos?": "m b 12",
    "query_pos?": "n b 12",
}
