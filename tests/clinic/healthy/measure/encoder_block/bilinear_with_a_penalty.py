"""For long DNA: bilinear scores that fall with distance, and a penalty."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class UnitNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gain = nn.Parameter(torch.full((1,), dim**0.5))

    def forward(self, x):
        return self.gain * F.normalize(x, dim=-1, eps=1e-6)


class BilinearAttention(nn.Module):
    """Scores are x W y for each head; far bases count less."""

    def __init__(self, dim, heads, longest):
        super().__init__()
        self.heads = heads
        self.bilinear = nn.Parameter(torch.randn(heads, dim, dim) / dim)
        self.value = nn.Linear(dim, dim)
        self.output = nn.Linear(dim, dim)
        place = torch.arange(longest)
        far = (place[:, None] - place).abs().log1p()
        self.register_buffer("far", far, persistent=False)
        self.slope = nn.Parameter(torch.ones(heads, 1, 1))

    def forward(self, x, mask=None):
        b, n, d = x.shape
        score = torch.einsum("bid,hde,bje->bhij", x, self.bilinear, x)
        score = score * d**-0.5 - F.softplus(self.slope) * self.far[:n, :n]
        if mask is not None:
            score = score.masked_fill(~mask, torch.finfo(score.dtype).min)
        share = torch.softmax(score, dim=-1)
        v = self.value(x).view(b, n, self.heads, -1)
        heard = torch.einsum("bhij,bjhc->bihc", share, v)
        return self.output(heard.reshape(b, n, d)), share


class GenomeLayer(nn.Module):
    def __init__(self, dim, heads, longest=64, expand=2):
        super().__init__()
        self.attention = BilinearAttention(dim, heads, longest)
        self.ffn = nn.Sequential(
            nn.Linear(dim, expand * dim),
            nn.SiLU(),
            nn.Linear(expand * dim, dim),
        )
        self.ln = nn.ModuleList(UnitNorm(dim) for _ in range(4))

    def forward(self, bases, save_memory=False, mask=None):
        heard, share = self.attention(self.ln[0](bases), mask)
        bases = bases + self.ln[1](heard)
        work = self.ffn
        if save_memory:
            work = lambda x: checkpoint(self.ffn, x, use_reentrant=False)  # noqa: E731
        bases = bases + self.ln[3](work(self.ln[2](bases)))
        return bases, share.square().sum(-1).mean()


PATIENT = GenomeLayer(dim=10, heads=2)
FACTS = {
    "layout": "BND",
    "order": "sandwich",
    "attention": "attention",
    "norms": ["ln.0", "ln.1", "ln.2", "ln.3"],
    "feed_forward": "ffn",
    "inside": False,
    "mask": "keep",
    "longest": 64,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"bases": "b n 10", "save_memory?": "true", "mask?": "keep b 1 n n"}
