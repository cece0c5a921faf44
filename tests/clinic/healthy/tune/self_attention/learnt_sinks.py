"""Each head has a learnt score for "nothing", which takes its share."""

from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class AttentionConfig:
    hidden_size: int = 12
    head_dim: int = 4
    num_attention_heads: int = 6
    num_key_value_heads: int = 2
    rope_parameters: dict = field(default_factory=lambda: {"theta": 150000.0})


def sdpa(Q, K, V, S, sm_scale):
    # n_tokens, n_heads, q_mult, d_head
    n_tokens, n_heads, q_mult, _ = Q.shape
    K = K[:, :, None, :].expand(-1, -1, q_mult, -1)
    V = V[:, :, None, :].expand(-1, -1, q_mult, -1)
    S = S.reshape(n_heads, q_mult, 1, 1).expand(-1, -1, n_tokens, -1)
    mask = torch.triu(Q.new_full((n_tokens, n_tokens), -torch.inf), diagonal=1)
    QK = torch.einsum("qhmd,khmd->hmqk", Q, K) * sm_scale + mask
    W = torch.softmax(torch.cat([QK, S], dim=-1), dim=-1)[..., :-1]
    return torch.einsum("hmqk,khmd->qhmd", W, V).reshape(n_tokens, -1)


class SinkAttention(nn.Module):
    def __init__(self, config: AttentionConfig):
        super().__init__()
        c = self.config = config
        self.sinks = nn.Parameter(torch.zeros(c.num_attention_heads))
        rows = c.head_dim * (c.num_attention_heads + 2 * c.num_key_value_heads)
        self.qkv = nn.Linear(c.hidden_size, rows)
        self.out = nn.Linear(c.head_dim * c.num_attention_heads, c.hidden_size)

    def rotate(self, x):
        n, half = x.shape[0], x.shape[-1] // 2
        theta = self.config.rope_parameters["theta"]
        power = torch.arange(half, device=x.device, dtype=x.dtype) / half
        turn = torch.arange(n, device=x.device, dtype=x.dtype)
        turn = torch.outer(turn, theta**-power)
        turn = turn.view(n, *[1] * (x.dim() - 2), half)
        a, b = x.chunk(2, dim=-1)
        cos, sin = turn.cos(), turn.sin()
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    def of_one_text(self, t):
        c = self.config
        groups = c.num_attention_heads // c.num_key_value_heads
        q, k, v = self.qkv(t).split(
            [
                c.num_attention_heads * c.head_dim,
                c.num_key_value_heads * c.head_dim,
                c.num_key_value_heads * c.head_dim,
            ],
            dim=-1,
        )
        q = q.view(-1, c.num_key_value_heads, groups, c.head_dim)
        k = k.view(-1, c.num_key_value_heads, c.head_dim)
        v = v.view(-1, c.num_key_value_heads, c.head_dim)
        q, k = self.rotate(q), self.rotate(k)
        return self.out(sdpa(q, k, v, self.sinks, c.head_dim**-0.5))

    def forward(self, x):
        return torch.stack([self.of_one_text(t) for t in x])


PATIENT = SinkAttention(AttentionConfig())
FACTS = {
    "layout": "BND",
    "causal": True,
    "formula": "own",
    "positions": "rotary",
    "packed": "by part",
    "n_heads": 6,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"x": "b n 12"}
