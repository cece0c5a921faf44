"""A vision transformer's: one matrix, cut by an axis of three."""

from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, num_heads=4, qkv_bias=True, drop=0.1):
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.attn_drop = nn.Dropout(drop)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        attn = self.attn_drop(attn.softmax(dim=-1))
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)


PATIENT = Attention(20)
FACTS = {
    "layout": "BND",
    "causal": False,
    "packed": "by part",
    "n_heads": 4,
    "dropout": 0.1,
}
INPUTS = {"x": "b n 20"}
