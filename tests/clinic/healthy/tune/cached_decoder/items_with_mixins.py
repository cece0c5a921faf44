"""A recommender's: numbers of items in, scores of items out, and mixins."""

import torch
from torch import nn


class NormMixin:
    """Layer norm, for whoever has gains and shifts."""

    def add_norm(self, name, width):
        self.register_parameter(
            f"{name}_gain", nn.Parameter(torch.ones(width))
        )
        self.register_parameter(
            f"{name}_shift", nn.Parameter(torch.zeros(width))
        )

    def norm(self, name, x):
        gain = getattr(self, f"{name}_gain")
        shift = getattr(self, f"{name}_shift")
        x = x - x.mean(-1, keepdim=True)
        return (
            gain * x / (x.var(-1, correction=0, keepdim=True) + 1e-8).sqrt()
            + shift
        )


class MemoryMixin:
    """A list of chunks of keys and values; joined when they are read."""

    @staticmethod
    def remember(cache, keys, values):
        return [*(cache or []), (keys, values)]

    @staticmethod
    def recall(cache):
        return [torch.cat(part, dim=2) for part in zip(*cache, strict=True)]


class MaskMixin:
    @staticmethod
    def past(new, known, like):
        """Which of the known items came before each of the new ones."""
        number = torch.ones(known, device=like.device).cumsum(0)
        added = number[known - new :, None] - number
        return torch.where(added < 0, -torch.inf, 0.0).to(like.dtype)


class NextItem(NormMixin, MemoryMixin, MaskMixin, nn.Module):
    def __init__(self, items, width, heads):
        super().__init__()
        self.heads = heads
        self.items = nn.Embedding(items, width)
        self.add_norm("first", width)
        self.add_norm("second", width)
        self.add_norm("last", width)
        self.qkv = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.inner = nn.Sequential(
            nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)
        )

    def forward(self, basket, cache=None):
        x = self.items(basket)
        b, new, width = x.shape
        qkv = self.qkv(self.norm("first", x)).view(b, new, self.heads, 3, -1)
        q, k, v = qkv.permute(3, 0, 2, 1, 4)
        cache = self.remember(cache, k, v)
        k, v = self.recall(cache)
        score = torch.einsum("bhic,bhjc->bhij", q, k) / q.shape[-1] ** 0.5
        share = (score + self.past(new, k.shape[2], score)).softmax(dim=-1)
        heard = torch.einsum("bhij,bhjc->bihc", share, v)
        x = x + self.join(heard.reshape(b, new, width))
        x = x + self.inner(self.norm("second", x))
        return [self.norm("last", x) @ self.items.weight.mT, cache]


PATIENT = NextItem(items=12, width=8, heads=2)
FACTS = {"d_model": None, "dtypes": ("float64", "float32", "bfloat16")}
INPUTS = {"basket": "ids b n"}
