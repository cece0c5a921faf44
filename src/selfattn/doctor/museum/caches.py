"""Decoders that keep keys and values."""

import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor.museum.entry import room
from selfattn.masks import causal_mask
from selfattn.positions import rope_halves

D = 8


class Kept(nn.Module):
    """A layer that keeps its keys and values; the rooms misuse them."""

    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(D, 3 * D)

    def project(self, x, cache, offset=None):
        """Queries of the new tokens, and all keys and values so far."""
        past = 0 if cache is None else cache[0].shape[1]
        offset = past if offset is None else offset
        q, k, v = self.W(x).chunk(3, dim=-1)
        q, k = (rope_halves(t, offset=offset) for t in (q, k))
        if cache is not None:
            k = torch.cat((cache[0], k), dim=1)
            v = torch.cat((cache[1], v), dim=1)
        return q, k, v


@room(
    "pytorch/pytorch#144858",
    "2025-01",
    kind="cached-decoder",
    named="first on first",
    versions="PyTorch 2.2.2",
    d_model=D,
)
class SeesTheFirstWordAlone(Kept):
    """With is_causal=True and a cache, every new word came out the same.

    PyTorch lays the first query on the first key. The same befell ONNX, and
    the reference by which ExecuTorch tests its caches.
    """

    def forward(self, x, cache=None):
        """Leave the mask to PyTorch."""
        q, k, v = self.project(x, cache)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True), (k, v)


@room(
    "meta-pytorch/torchtune#959",
    "2024-05",
    kind="cached-decoder",
    named="not causal",
    d_model=D,
)
class CausalByItsCacheAlone(Kept):
    """Without the cache, a model wrote nonsense.

    The causal mask was made where the cache was, and only there.
    """

    def forward(self, x, cache=None):
        """Trust that there is nothing to hide."""
        q, k, v = self.project(x, cache)
        return F.scaled_dot_product_attention(q, k, v), (k, v)


@room(
    "TransformerLensOrg/TransformerLens#776",
    "2024-11",
    kind="cached-decoder",
    named="new words at wrong distances",
    d_model=D,
)
class FirstRowsOfTheBias(Kept):
    """With a cache, models of the Bloom family repeated themselves.

    Their bias by distance was cut to its first rows, which are those of the
    first queries; the new words are the last.
    """

    def forward(self, x, cache=None):
        """Take as many rows as there are queries, from the wrong end."""
        q, k, v = self.project(x, cache)
        n = k.shape[1]
        i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]
        bias = (j - i).clamp(max=0).to(q.dtype)[: q.shape[1]]
        bias = bias.masked_fill(~causal_mask(q.shape[1], n), -torch.inf)
        return F.scaled_dot_product_attention(q, k, v, bias), (k, v)


@room(
    "huggingface/transformers#37574",
    "2025-04",
    kind="cached-decoder",
    named="",
    versions="transformers 4.51.2",
    d_model=D,
)
class SlidesTooEarly(Kept):
    """When a text reached its window's length, a sliding cache went wrong.

    Made anew as the nearest slip: the oldest word goes one step too soon,
    while the next new word should still see it.
    """

    def forward(self, x, cache=None):
        """Keep two, the new one counted, of a window of three."""
        position = 0 if cache is None else cache[2]
        window = 3
        q, k, v = self.project(x, cache and cache[:2], position)
        i = torch.arange(position, position + q.shape[1])[:, None]
        first = position + q.shape[1] - k.shape[1]
        j = torch.arange(first, first + k.shape[1])[None, :]
        seen = (j <= i) & (i - j < window)
        output = F.scaled_dot_product_attention(q, k, v, seen)
        kept = k[:, -window + 2 :], v[:, -window + 2 :]
        return output, (*kept, position + q.shape[1])


@room(
    "huggingface/transformers#pull-20203",
    "2022-11",
    kind="cached-decoder",
    named="positions start again",
    d_model=D,
)
class DistancesFromNought(Kept):
    """With a cache, a BERT that writes counted its positions from 0 again.

    Its distances were those within the new words, though the keys were many.
    """

    def forward(self, x, cache=None):
        """Rotate as if the chunk were the text."""
        q, k, v = self.project(x, cache, offset=0)
        mask = causal_mask(q.shape[1], k.shape[1])
        return F.scaled_dot_product_attention(q, k, v, mask), (k, v)
