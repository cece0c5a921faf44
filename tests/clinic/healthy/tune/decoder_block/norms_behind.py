"""The original, with PyTorch's attentions; the future is told by a mask."""

from torch import nn


class DecoderLayer(nn.Module):
    def __init__(self, d_model, nhead, d_ff):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(
            d_model, nhead, batch_first=True
        )
        self.cross_attn = nn.MultiheadAttention(
            d_model, nhead, batch_first=True
        )
        self.ffn = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)
        )
        self.norm_1 = nn.LayerNorm(d_model)
        self.norm_2 = nn.LayerNorm(d_model)
        self.norm_3 = nn.LayerNorm(d_model)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None):
        out, _ = self.self_attn(tgt, tgt, tgt, attn_mask=tgt_mask)
        tgt = self.norm_1(tgt + out)
        out, _ = self.cross_attn(tgt, memory, memory, attn_mask=memory_mask)
        tgt = self.norm_2(tgt + out)
        return self.norm_3(tgt + self.ffn(tgt))


PATIENT = DecoderLayer(12, 2, 17)
FACTS = {
    "order": "post",
    "mask": "block",
    "layout": "BND",
    "own_mask": "tgt_mask",
}
INPUTS = {
    "tgt": "b n 12",
    "memory": "b m 12",
    "tgt_mask": "future n n",
    "memory_mask?": "block n m",
}
