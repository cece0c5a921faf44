"""A learnt gate of x lets each sublayer in; what it keeps of x is the rest."""

from torch import nn


class Highway(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gate = nn.Linear(size, size)
        nn.init.constant_(self.gate.bias, -1.0)  # at first, mostly carry

    def forward(self, x, y):
        t = self.gate(x).sigmoid()
        return t * y + (1.0 - t) * x


class HighwayDecoderBlock(nn.Module):
    def __init__(self, size, heads, inner):
        super().__init__()
        self.past = nn.MultiheadAttention(size, heads, batch_first=True)
        self.source = nn.MultiheadAttention(size, heads, batch_first=True)
        self.network = nn.Sequential(
            nn.Linear(size, inner), nn.ELU(), nn.Linear(inner, size)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(3))
        self.gates = nn.ModuleList(Highway(size) for _ in range(3))

    def forward(self, target, source, source_ignore=None):
        n = target.size(1)
        later = nn.Transformer.generate_square_subsequent_mask(
            n, device=target.device, dtype=target.dtype
        )
        h = self.norms[0](target)
        h = self.past(h, h, h, attn_mask=later, need_weights=False)[0]
        target = self.gates[0](target, h)
        h, _ = self.source(
            self.norms[1](target),
            source,
            source,
            key_padding_mask=source_ignore,
        )
        target = self.gates[1](target, h)
        h = self.network(self.norms[2](target))
        return self.gates[2](target, h)


PATIENT = HighwayDecoderBlock(12, 3, 16)
FACTS = {
    "order": "pre",
    "formula": "own",
    "path": "free",
    "causal": True,
    "layout": "BND",
    "padding": "block",
    "self_attention": "past",
    "cross_attention": "source",
    "feed_forward": "network",
    "norms": ["norms.0", "norms.1", "norms.2"],
}
INPUTS = {
    "target": "b n 12",
    "source": "b m 12",
    "source_ignore?": "padding b m",
}
