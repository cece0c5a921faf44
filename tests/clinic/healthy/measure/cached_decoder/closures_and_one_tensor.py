"""To be exported: no module, but a closure, whose past is one tensor."""

from functools import partial

import torch


def layer_norm(gain, shift, x):
    x = x - x.mean(dim=-1, keepdim=True)
    return (
        x / (x.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * gain
        + shift
    )


def affine(weight, bias, x):
    return torch.matmul(x, weight) + bias


def weights_of(width, out, kind):
    return torch.randn(width, out, dtype=kind) / width**0.5, torch.zeros(
        out, dtype=kind
    )


def make_decoder(width, heads, kind=torch.float64):
    """A step with its weights bound: step(embeddings, past)."""
    size = width // heads
    project = partial(affine, *weights_of(width, 3 * width, kind))
    merge = partial(affine, *weights_of(width, width, kind))
    widen = partial(affine, *weights_of(width, 4 * width, kind))
    narrow = partial(affine, *weights_of(4 * width, width, kind))
    ones, zeros = torch.ones(width, dtype=kind), torch.zeros(width, dtype=kind)
    norm_in, norm_out = (partial(layer_norm, ones, zeros) for _ in range(2))

    def empty(embeddings):
        return embeddings.new_zeros(2, len(embeddings), heads, 0, size)

    def attend(x, past):
        batch, new, _ = x.shape
        qkv = project(x).reshape(batch, new, 3, heads, size)
        q, *kv = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        present = torch.cat((past, torch.stack(kv)), dim=3)
        k, v = present[0], present[1]
        scores = torch.matmul(q, k.transpose(-1, -2)) * size**-0.5
        row = torch.arange(new).unsqueeze(1) + past.shape[3]
        later = torch.arange(k.shape[2]).unsqueeze(0) > row
        scores = torch.where(later, torch.full_like(scores, -1e30), scores)
        y = torch.matmul(scores.softmax(dim=-1), v)
        return merge(y.transpose(1, 2).reshape(batch, new, width)), present

    def step(embeddings, past=None):
        past = empty(embeddings) if past is None else past
        y, present = attend(norm_in(embeddings), past)
        x = embeddings + y
        hidden = torch.nn.functional.gelu(widen(norm_out(x)))
        return x + narrow(hidden), present

    return step


PATIENT = make_decoder(width=12, heads=3)
FACTS = {"d_model": 12, "dtypes": ("float64",)}
INPUTS = {"embeddings": "b n 12"}
