"""For telephones: head after head, and highways instead of sums."""

import math

import torch
from torch import Tensor, nn


def wave_table(n: int, width: int, like: Tensor) -> Tensor:
    at = torch.arange(n, device=like.device, dtype=torch.float64)
    rate = torch.exp(
        torch.arange(0, width, 2, device=like.device).double()
        * (-math.log(10000.0) / width)
    )
    angle = at[:, None] * rate
    table = torch.cat([angle.sin(), angle.cos()], dim=-1)[:, :width]
    return table.to(like.dtype)[:, None]


def one_head(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor) -> Tensor:
    """n, b, d each; hidden says b, n, n what is not looked at."""
    scores = torch.einsum("ibd,jbd->bij", q, k) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(hidden, torch.finfo(q.dtype).min)
    top = scores.max(dim=-1, keepdim=True).values
    raised = torch.exp(scores - top).masked_fill(hidden, 0.0)
    total = raised.sum(dim=-1, keepdim=True)
    shares = raised / torch.where(total == 0, 1.0, total)
    return torch.einsum("bij,jbd->ibd", shares, v)


def heads_in_turn(q: Tensor, k: Tensor, v: Tensor, n: int, hidden: Tensor):
    parts = zip(q.chunk(n, -1), k.chunk(n, -1), v.chunk(n, -1), strict=True)
    return torch.cat([one_head(*part, hidden) for part in parts], dim=-1)


class PhoneEncoderLayer(nn.Module):
    def __init__(self, d_model: int, nhead: int, dim_feedforward: int):
        super().__init__()
        self.nhead = nhead
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.q_lin = nn.Linear(d_model, d_model)
        self.k_lin = nn.Linear(d_model, d_model)
        self.v_lin = nn.Linear(d_model, d_model)
        self.out_lin = nn.Linear(d_model, d_model)
        self.linear1 = nn.Linear(d_model, dim_feedforward)
        self.linear2 = nn.Linear(dim_feedforward, d_model)
        self.carry1 = nn.Linear(d_model, d_model)
        self.carry2 = nn.Linear(d_model, d_model)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for carry in (self.carry1, self.carry2):
            nn.init.constant_(carry.bias, -1.0)

    def hidden(
        self, src: Tensor, mask: Tensor | None, padding: Tensor | None
    ) -> Tensor:
        n, b, _ = src.shape
        hidden = torch.zeros(b, n, n, dtype=torch.bool, device=src.device)
        if mask is not None:
            hidden = torch.logical_or(hidden, mask)
        if padding is not None:
            hidden = torch.logical_or(hidden, padding[:, None])
        return hidden

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        hidden = self.hidden(src, src_mask, src_key_padding_mask)
        x = self.norm1(src)
        placed = x + wave_table(src.shape[0], src.shape[2], src)
        q, k, v = self.q_lin(placed), self.k_lin(placed), self.v_lin(x)
        told = self.out_lin(heads_in_turn(q, k, v, self.nhead, hidden))
        gate = torch.sigmoid(self.carry1(src))
        src = gate * told + (1.0 - gate) * src
        fed = self.linear2(self.linear1(self.norm2(src)).relu().square())
        gate = torch.sigmoid(self.carry2(src))
        return gate * fed + (1.0 - gate) * src


PATIENT = PhoneEncoderLayer(12, 3, 20)
FACTS = {
    "layout": "NBD",
    "order": "pre",
    "formula": "own",
    "path": "free",
    "causal": False,
    "norms": ("norm1", "norm2"),
    "flat_attention": ("q_lin", "k_lin", "v_lin", "out_lin"),
    "n_heads": 3,
    "mask": "block",
    "padding": "block",
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "src": "n b 12",
    "src_mask?": "block n n",
    "src_key_padding_mask?": "padding b n",
}
