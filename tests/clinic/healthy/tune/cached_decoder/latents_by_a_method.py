"""No module at all: a method, numbers in a dict, and latents for a cache."""

import math

import torch

FLOAT = torch.float64


class Scribe:
    """Writes words; of each it keeps one small latent a layer, no keys."""

    def __init__(self, vocab=13, dim=12, heads=3, rank=5, layers=2):
        self.heads, self.dim, self.rank = heads, dim, rank
        self.emb = self._drawn(vocab, dim)
        self.layers = [
            {
                "down": self._drawn(dim, rank),
                "query": self._drawn(heads, dim, dim // heads),
                "up_key": self._drawn(heads, rank, dim // heads),
                "up_value": self._drawn(heads, rank, dim // heads),
                "out": self._drawn(heads, dim // heads, dim),
                "w1": self._drawn(dim, 2 * dim),
                "w2": self._drawn(2 * dim, dim),
            }
            for _ in range(layers)
        ]

    @staticmethod
    def _drawn(*shape):
        return torch.randn(shape, dtype=FLOAT) / math.sqrt(shape[-2])

    def _rms(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)

    def _attend(self, w, x, latents):
        """Queries go down to the latents, so that keys are never made."""
        q = torch.einsum("btd,hdc->bhtc", x, w["query"])
        q = torch.einsum("bhtc,hrc->bhtr", q, w["up_key"])
        scores = torch.einsum("bhtr,bsr->bhts", q, latents)
        scores = scores / math.sqrt(self.dim // self.heads)
        t, s = scores.shape[-2:]
        ago = torch.arange(s - t, s)[:, None] - torch.arange(s)
        slopes = 0.5 ** torch.arange(1, self.heads + 1, dtype=FLOAT)
        scores = scores - slopes[:, None, None] * ago
        scores = scores.masked_fill(ago < 0, -math.inf)
        read = torch.einsum("bhts,bsr->bhtr", scores.softmax(-1), latents)
        told = torch.einsum("bhtr,hrc->bhtc", read, w["up_value"])
        return torch.einsum("bhtc,hcd->btd", told, w["out"])

    def step(self, words, cache=None):
        """Words (batch, chunk) to scores of next words, and the cache."""
        cache = cache or [None] * len(self.layers)
        x, kept = self.emb[words], []
        for w, past in zip(self.layers, cache, strict=True):
            y = self._rms(x)
            latents = y @ w["down"]
            if past is not None:
                latents = torch.cat((past, latents), dim=1)
            kept.append(latents)
            x = x + self._attend(w, y, latents)
            x = x + torch.relu(self._rms(x) @ w["w1"]) @ w["w2"]
        return self._rms(x) @ self.emb.T, kept


PATIENT = Scribe().step
FACTS = {"d_model": None, "dtypes": ("float64",)}
INPUTS = {"words": "ids b n"}
