"""Tokens before texts, norms behind, an attention by its own name."""

from torch import nn


class Encoder(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.mixer = nn.MultiheadAttention(width, heads, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.Tanh(), nn.Linear(2 * width, width)
        )
        self.norm_mixer = nn.LayerNorm(width)
        self.norm_mlp = nn.LayerNorm(width)

    def forward(self, x):
        residual = x
        x = self.mixer(x, x, x, need_weights=False)[0]
        x = self.norm_mixer(residual + x)
        residual = x
        x = self.mlp(x)
        return self.norm_mlp(residual + x)


PATIENT = Encoder(12, 3)
FACTS = {
    "order": "post",
    "layout": "NBD",
    "attention": "mixer",
    "feed_forward": "mlp",
    "norms": ["norm_mixer", "norm_mlp"],
}
INPUTS = {"x": "n b 12"}
