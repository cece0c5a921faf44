"""Who does not do what was told of him is ill, and by the right name.

Told of a cap or a bias that it did not have, a plain function was "detached",
though the output be right: cut off at the place of the cap, an attention was
one without the cap. A layer told of a scale was "scaled by the width of v",
one told of more heads than it has had no name at all, and a width that was
told wrong was passed over.
"""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)


def usual(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def distances(n_heads, n_q, n_k):
    slopes = 0.5 ** torch.arange(1.0, n_heads + 1)
    i, j = torch.arange(n_q)[:, None] + n_k - n_q, torch.arange(n_k)
    return -slopes[:, None, None] * (i - j).abs()


def nearer(q, k, v, sign=1):
    added = distances(q.shape[-3], q.shape[-2], k.shape[-2]).to(q)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=sign * added)


def farther(q, k, v):
    return nearer(q, k, v, sign=-1)


def capped(q, k, v):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return (5 * torch.tanh(scores / 5)).softmax(dim=-1) @ v


def cosines(q, k, v):
    return (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT).softmax(
        dim=-1
    ) @ v


@pytest.mark.parametrize(
    ("told", "keeps", "leaves_out", "name"),
    [
        ({"cap": 5.0}, capped, usual, "own cap not used"),
        ({"bias": distances}, nearer, usual, "own bias not added"),
        ({"bias": distances}, nearer, farther, "own bias not added"),
        ({"scores": "cosine"}, cosines, usual, "cosine not used"),
    ],
)
def test_what_is_told_of_a_function_and_left_out(
    told, keeps, leaves_out, name
):
    layout = {"kind": "attention", "layout": "BHND"}
    assert here(keeps, **layout, **told).passed
    report = here(leaves_out, **layout, **told)
    assert report.exit_code == 1
    assert report.mistake.name == name


class Layer(nn.Module):
    def __init__(self, n_heads=3, scale=None):
        super().__init__()
        self.cut, self.by = n_heads, scale
        self.q, self.k, self.v, self.o = (nn.Linear(12, 12) for _ in range(4))

    def forward(self, x):
        q, k, v = (
            to(x).unflatten(-1, (self.cut, -1)).transpose(1, 2)
            for to in (self.q, self.k, self.v)
        )
        heads = F.scaled_dot_product_attention(q, k, v, scale=self.by)
        return self.o(heads.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("scale", [0.1, 2.0])
def test_a_scale_that_is_told_of_a_layer_and_left_out(scale):
    told = {"kind": "self-attention", "n_heads": 3, "scale": scale}
    torch.manual_seed(0)
    assert here(Layer(scale=scale), **told).passed
    assert here(Layer(), **told).mistake.name == "own scale not used"


@pytest.mark.parametrize("told", [1, 2, 4, 6])
def test_heads_that_are_not_as_many_as_was_told(told):
    torch.manual_seed(0)
    report = here(Layer(), kind="self-attention", n_heads=told)
    assert report.exit_code == 1
    assert report.mistake.name == "another number of heads"


def test_a_width_that_is_told_wrong_is_asked_after():
    told = {"kind": "self-attention", "n_heads": 3}
    assert here(Layer(), **told, d_model=12).passed
    report = here(Layer(), **told, d_model=7)
    assert report.exit_code == 2
    assert "You say d_model=7" in report.question
    assert "of 12 features" in report.question
