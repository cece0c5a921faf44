"""What a probe that fails is the evidence of, and what it is not."""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, kind="self-attention", time_limit=None)


class Dropping(nn.Module):
    """Attention with a value nobody knows, and one slip more in training."""

    def __init__(self, slip, d_model=12, n_heads=3):
        super().__init__()
        self.slip, self.n_heads = slip, n_heads
        self.q, self.k, self.v, self.out = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )
        self.drop = nn.Identity() if slip == "keeps all" else nn.Dropout(0.5)

    def forward(self, x):
        if self.training and self.slip == "writes over x":
            x.mul_(1.5)
        q, k, v = (
            one(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
        said = self.drop(weights) @ v.sin()
        return self.out(said.transpose(1, 2).flatten(-2))


@pytest.mark.parametrize(
    ("slip", "name"),
    [("keeps all", "dropout never begins"), ("writes over x", None)],
)
def test_who_writes_over_what_he_drops_from_is_not_said_to_keep_it(slip, name):
    """It drops, and was told that it does not: the same probe fails."""
    torch.manual_seed(0)
    report = here(
        Dropping(slip), n_heads=3, layout="BND", causal=False, dropout=0.5
    )
    claims = [found.probe.claim for found in report.findings]
    assert "in training, something is dropped" in claims
    assert (report.mistake and report.mistake.name) == name, report
