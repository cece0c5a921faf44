"""Of a speech encoder: linear biases to the left and to the right."""

import torch
from torch import Tensor, nn


def distance_penalty(n_heads: int, n_q: int, n_k: int) -> Tensor:
    """What is taken off scores, more and more with the distance."""
    ratio = 2.0 ** (-8.0 / n_heads)
    slopes = ratio ** torch.arange(1, n_heads + 1, dtype=torch.float64)
    frames = torch.arange(n_q)[:, None] - torch.arange(n_k)[None, :]
    return -slopes[:, None, None] * frames.abs()


class RelPosFreeSelfAttention(nn.Module):
    def __init__(self, dim: int, num_heads: int, p: float = 0.1):
        super().__init__()
        self.num_heads = num_heads
        self.linear_q = nn.Linear(dim, dim)
        self.linear_k = nn.Linear(dim, dim, bias=False)
        self.linear_v = nn.Linear(dim, dim)
        self.linear_out = nn.Linear(dim, dim)
        self.attn_drop = nn.Dropout(p)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).movedim(-2, 1)

    def forward(self, feats: Tensor, feats_lens: Tensor | None = None):
        q, k, v = (
            self._heads(linear(feats))
            for linear in (self.linear_q, self.linear_k, self.linear_v)
        )
        frames = feats.shape[1]
        bias = distance_penalty(self.num_heads, frames, frames)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + bias.to(q)
        if feats_lens is not None:
            at = torch.arange(frames, device=feats.device)
            silence = at >= feats_lens.unsqueeze(-1)
            scores = scores.masked_fill(
                silence[:, None, None, :], float("-inf")
            )
        probs = self.attn_drop(scores.softmax(-1))
        return self.linear_out((probs @ v).movedim(1, -2).flatten(-2))


PATIENT = RelPosFreeSelfAttention(12, 3).eval()
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "lengths",
    "names": {"x": "feats", "mask": "feats_lens"},
    "projections": {
        "q": "linear_q",
        "k": "linear_k",
        "v": "linear_v",
        "out": "linear_out",
    },
    "d_model": 12,
    "n_heads": 3,
    "bias": distance_penalty,
    "dropout": 0.1,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"feats": "b n 12", "feats_lens?": "lengths b n"}
