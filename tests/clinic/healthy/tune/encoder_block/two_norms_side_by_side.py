"""Attention and network side by side, each behind a norm of its own."""

import torch
from torch import nn


def slopes(heads):
    return torch.tensor([2.0 ** (-8 * (h + 1) / heads) for h in range(heads)])


class BiasedAttention(nn.Module):
    """Farther keys count less: heads differ in how much less."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.register_buffer("slopes", slopes(heads), persistent=False)
        # head after head: its query, its key, its value
        self.query_key_value = nn.Linear(hidden, 3 * hidden)
        self.dense = nn.Linear(hidden, hidden)

    def forward(self, x):
        b, n, d = x.shape
        fused = self.query_key_value(x)
        fused = fused.view(b, n, self.heads, 3, d // self.heads)
        q, k, v = (fused[..., i, :].transpose(1, 2) for i in range(3))
        alibi = self.slopes[:, None, None] * torch.arange(n, device=x.device)
        scores = torch.baddbmm(
            alibi.to(x.dtype).repeat(b, 1, 1),
            q.reshape(b * self.heads, n, -1),
            k.reshape(b * self.heads, n, -1).transpose(1, 2),
            alpha=(d // self.heads) ** -0.5,
        )
        later = torch.ones(n, n, device=x.device, dtype=torch.bool).triu(1)
        probs = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
        out = torch.bmm(probs, v.reshape(b * self.heads, n, -1))
        out = out.view(b, self.heads, n, -1).transpose(1, 2)
        return self.dense(out.reshape(b, n, d))


class MLP(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.dense_h_to_4h = nn.Linear(hidden, inner)
        self.act = nn.GELU()
        self.dense_4h_to_h = nn.Linear(inner, hidden)

    def forward(self, x):
        return self.dense_4h_to_h(self.act(self.dense_h_to_4h(x)))


class Layer(nn.Module):
    def __init__(self, hidden, heads, inner, use_parallel_residual=True):
        super().__init__()
        self.use_parallel_residual = use_parallel_residual
        self.input_layernorm = nn.LayerNorm(hidden)
        self.post_attention_layernorm = nn.LayerNorm(hidden)
        self.attention = BiasedAttention(hidden, heads)
        self.mlp = MLP(hidden, inner)
        self.post_attention_dropout = nn.Dropout(0.1)
        self.post_mlp_dropout = nn.Dropout(0.1)

    def forward(self, hidden_states):
        attn = self.attention(self.input_layernorm(hidden_states))
        attn = self.post_attention_dropout(attn)
        if self.use_parallel_residual:
            mlp = self.mlp(self.post_attention_layernorm(hidden_states))
            return self.post_mlp_dropout(mlp) + attn + hidden_states
        attn = attn + hidden_states
        mlp = self.mlp(self.post_attention_layernorm(attn))
        return self.post_mlp_dropout(mlp) + attn


PATIENT = Layer(12, 3, 20)
FACTS = {
    "order": "parallel",
    "layout": "BND",
    "causal": True,
    "attention": "attention",
    "feed_forward": "mlp",
    "norms": ["input_layernorm", "post_attention_layernorm"],
    "n_heads": 3,
    "dropout": 0.1,
}
INPUTS = {"hidden_states": "b n 12"}
