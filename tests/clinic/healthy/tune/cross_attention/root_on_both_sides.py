"""Speech to text: the root of the scale on both sides, and scores returned."""

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, n_state: int, n_head: int):
        super().__init__()
        self.n_head = n_head
        self.query = nn.Linear(n_state, n_state)
        self.key = nn.Linear(n_state, n_state, bias=False)
        self.value = nn.Linear(n_state, n_state)
        self.out = nn.Linear(n_state, n_state)

    def forward(self, x: Tensor, xa: Tensor, frames: Tensor | None = None):
        """Text x of audio xa, of whose frames False ones are silence."""
        wv, qk = self.qkv_attention(
            self.query(x), self.key(xa), self.value(xa), frames
        )
        return self.out(wv), qk

    def qkv_attention(self, q, k, v, frames):
        scale = (q.shape[-1] // self.n_head) ** -0.25
        q, k, v = (
            t.view(*t.shape[:2], self.n_head, -1).permute(order)
            for t, order in zip(
                (q, k, v),
                ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)),
                strict=True,
            )
        )
        qk = (q * scale) @ (k * scale)
        if frames is not None:
            qk = qk + torch.zeros_like(qk).masked_fill(
                frames.logical_not()[:, None, None, :], -torch.inf
            )
        w = qk.softmax(dim=-1)
        wv = (w @ v).permute(0, 2, 1, 3).flatten(start_dim=2)
        # for the alignment of words: before the softmax
        return wv, qk.detach()


PATIENT = MultiHeadAttention(12, 2)
FACTS = {
    "layout": "BND",
    "padding": "keep",
    "names": {"context": "xa", "padding": "frames"},
    "projections": {"q": "query", "k": "key", "v": "value", "out": "out"},
    "d_model": 12,
    "n_heads": 2,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "b n 12", "xa": "b m 12", "frames?": "real b m"}
