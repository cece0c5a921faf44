"""Second-generation vision windows: angles, a temperature, a bias to add."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class WindowAttentionConfig:
    tau_max: float = math.log(100.0)
    log_tau: float = math.log(8.0)
    drop: float = 0.0

    def scale(self):
        return math.exp(min(self.log_tau, self.tau_max))


class CosineWindowAttention:
    """Not a module: temperature and tables are owned by whoever calls it."""

    def __init__(self, cfg: WindowAttentionConfig):
        self.cfg = cfg
        self.training = False

    def logits(self, q, k):
        q = F.normalize(q, p=2.0, dim=-1)
        k = F.normalize(k, p=2.0, dim=-1)
        return torch.matmul(q, k.transpose(-2, -1)).mul(self.cfg.scale())

    def __call__(
        self,
        q: torch.Tensor,  # windows x heads x tokens x channels
        k: torch.Tensor,
        v: torch.Tensor,
        rel_bias: torch.Tensor | None = None,  # heads x tokens x tokens
        shift_mask: torch.Tensor | None = None,  # 0 or -inf
    ) -> torch.Tensor:
        attn = self.logits(q, k)
        if rel_bias is not None:
            attn += rel_bias
        if shift_mask is not None:
            attn += shift_mask
        attn = attn.softmax(dim=-1)
        attn = F.dropout(attn, self.cfg.drop, training=self.training)
        return attn @ v


PATIENT = CosineWindowAttention(WindowAttentionConfig())
FACTS = {
    "layout": "BHND",
    "mask": "add",
    "mask_axes": "any",
    "empty_row": "nan",
    "names": {"mask": "shift_mask"},
    "scores": "cosine",
    "scale": 8.0,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "rel_bias?": "bias h n m",
    "shift_mask?": "add b 1 n m",
}
OTHER_INPUTS = [
    {
        "q": "b h n d",
        "k": "b h n d",
        "v": "b h n e",
        "shift_mask?": "add n n",
    },
]
