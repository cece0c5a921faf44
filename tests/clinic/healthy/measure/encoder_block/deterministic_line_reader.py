"""A flax user's model of code, with norms that are functions of tables."""

import torch
from torch import nn
from torch.nn import functional as F


class LineReader(nn.Module):
    """Lines see each other the less, the further apart they are."""

    def __init__(self, features, num_heads, mlp_dim, dropout_rate=0.5):
        super().__init__()
        self.rate = dropout_rate
        self.num_heads = num_heads
        self.attention = nn.MultiheadAttention(
            features, num_heads, dropout=dropout_rate, batch_first=True
        )
        self.wi = nn.Linear(features, mlp_dim)
        self.act = nn.GELU(approximate="tanh")
        self.wo = nn.Linear(mlp_dim, features)
        self.ln_scale = nn.ParameterList(
            torch.ones(features) for _ in range(2)
        )
        self.ln_bias = nn.ParameterList(
            torch.zeros(features) for _ in range(2)
        )
        self.decay = nn.Parameter(torch.linspace(-2.0, 0.0, num_heads))

    def layer_norm(self, x, i):
        return F.layer_norm(
            x, x.shape[-1:], self.ln_scale[i], self.ln_bias[i], eps=1e-6
        )

    def dropout(self, x, deterministic):
        return F.dropout(x, self.rate, self.training and not deterministic)

    def bias(self, x, attention_bias):
        """Distances, and what the caller adds, for each text and head."""
        b, n, _ = x.shape
        at = torch.arange(n, device=x.device, dtype=x.dtype)
        apart = (at[:, None] - at[None, :]).abs()
        slopes = F.softplus(self.decay)[:, None, None]
        bias = (-slopes * apart).expand(b, -1, -1, -1)
        if attention_bias is not None:
            bias = bias + attention_bias
        return bias.reshape(b * self.num_heads, n, n)

    def forward(self, inputs, attention_bias=None, deterministic=False):
        y = self.layer_norm(inputs, 0)
        attention = self.attention
        was = attention.training
        attention.train(was and not deterministic)
        y, _ = attention(
            y,
            y,
            y,
            attn_mask=self.bias(inputs, attention_bias),
            need_weights=False,
        )
        attention.train(was)
        x = inputs + self.dropout(y, deterministic)
        y = self.act(self.wi(self.layer_norm(x, 1)))
        y = self.wo(self.dropout(y, deterministic))
        # what the next segment may look back to
        return x + self.dropout(y, deterministic), inputs.detach()


PATIENT = LineReader(features=12, num_heads=2, mlp_dim=18)
FACTS = {
    "layout": "BND",
    "order": "pre",
    "attention": "attention",
    "flat_feed_forward": ("wi", "act", "wo"),
    "mask": "add",
    "dropout": 0.5,
    "extra": "the attention gets a bias of distances from the block",
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "inputs": "b n 12",
    "attention_bias?": "add b 1 1 n",
    "deterministic?": "true",
}
