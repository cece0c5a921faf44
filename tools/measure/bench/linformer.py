"""Linformer: mixtures of keys."""

import contextlib
from collections.abc import Iterator

import torch
from torch import nn

from selfattn import LinformerAttention, MultiHeadAttention, attention
from selfattn.efficient.linformer import LearnedProjection
from tools.measure.bench.layers import of_layers
from tools.measure.bench.race import HEADS, D, Race, lean_sizes


def races() -> Iterator[Race]:
    """A layer that looks at 256 mixtures of the keys, against all keys."""
    for n, training in lean_sizes(1024, 4096, 16384):
        E, W = LearnedProjection(n, 256), LearnedProjection(n, 256)
        ours = LinformerAttention(E, W)
        form = lambda q, k, v, E=E, W=W, **_: attention(  # noqa: E731
            q, E.weight.double() @ k, W.weight.double() @ v
        )
        race, fair = of_layers(ours, "LinformerAttention", form, n)
        with contextlib.suppress(ImportError):
            race["linformer"] = with_weights(race["LinformerAttention"], n)
            fair["linformer"] = fair["LinformerAttention"]
        yield Race("layer", n, training, race, fair, layer=True)


def with_weights(ours: MultiHeadAttention, n: int) -> nn.Module:
    """The layer of the library linformer, with the weights of ours."""
    from linformer import LinformerSelfAttention

    peer = LinformerSelfAttention(HEADS * D, n, k=256, heads=HEADS)
    mixtures = ours.attend
    with torch.no_grad():
        for name in ("q", "k", "v"):
            to = getattr(peer, f"to_{name}")
            to.weight.copy_(getattr(ours, f"W_{name}").weight)
        peer.to_out.weight.copy_(ours.W_o.weight)
        peer.to_out.bias.zero_()
        peer.proj_k.copy_(mixtures.project.weight.T)
        peer.proj_v.copy_(mixtures.project_values.weight.T)
    return peer
