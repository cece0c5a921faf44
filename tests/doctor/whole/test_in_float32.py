"""Whole models that are written for float32, and a cache without places."""

import functools

import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)


class Lowest(nn.Module):
    """A model whose mask and softmax are written for float32 alone."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.words, self.head = nn.Embedding(11, 8), nn.Linear(8, 11)
        self.layers = nn.ModuleList(nn.Linear(8, 24) for _ in range(2))

    def forward(self, ids, attention_mask=None):
        x, n = self.words(ids), ids.shape[1]
        hidden = torch.ones(n, n).triu(1).bool()[None]
        if attention_mask is not None:
            hidden = hidden | (attention_mask[:, None, :] == 0)
        for layer in self.layers:
            q, k, v = layer(x).chunk(3, -1)
            low = torch.finfo(x.dtype).min
            scores = (q @ k.mT / 8**0.5).masked_fill(hidden, low)
            x = x + scores.softmax(-1, dtype=torch.float32).to(x) @ v
        return self.head(x)


class InFloat32(Lowest):
    """The same, that takes no float64."""

    def forward(self, ids, attention_mask=None):
        if self.head.weight.dtype == torch.float64:
            raise RuntimeError("this kernel has no float64")
        return super().forward(ids, attention_mask)


def test_what_fails_in_float64_alone_is_no_fault():
    """Where it was asked in float64, Gemma's and Bloom's padding was heard.

    float64's lowest number is -inf in float32, in which their softmax runs:
    a row of padding became NaN, and NaN times zero is heard.
    """
    for model in (Lowest(), InFloat32()):
        report = here(model, kind="language-model")
        assert "padding is heard" not in str(report), report
        assert "kernel" not in str(report), report
        assert not report.question


def test_a_model_whose_positions_start_again_is_told_so():
    """It was told that chunks tell another story, and not which."""

    class Restarting(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.words, self.places = nn.Embedding(11, 8), nn.Embedding(16, 8)
            self.map, self.head = nn.Linear(8, 24), nn.Linear(8, 11)

        def forward(self, ids, past=None):
            x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
            q, k, v = self.map(x).chunk(3, -1)
            if past is not None:
                k, v = torch.cat((past[0], k), 1), torch.cat((past[1], v), 1)
            n, m = q.shape[1], k.shape[1]
            seen = torch.ones(n, m).bool().tril(m - n)
            scores = (q @ k.mT).masked_fill(~seen, -torch.inf)
            weights = F.pad(scores, (0, 1)).softmax(-1)[..., :-1]
            return self.head(x + weights @ v), (k, v)

    report = here(Restarting(), kind="language-model", inside=False)
    assert report.mistake.name == "positions start again", report
