"""Two mistakes at once: the one that tells all of a part is a likeness."""

import functools

import torch
from torch import nn

from selfattn import attention
from selfattn.doctor import examine
from selfattn.doctor.engine.likeness import parts
from selfattn.doctor.engine.matching import Seen
from selfattn.doctor.engine.outcome import Outcome
from selfattn.doctor.probes import Probe

here = functools.partial(examine, time_limit=None)
ROWS = {"x": "n d"}


def test_parts_leave_out_what_needs_something():
    asked = (
        Probe("plain", ROWS),
        Probe("masked", ROWS, needs=("mask",)),
        Probe("both", ROWS, needs=("mask", "both")),
        Probe("precise", ROWS, dtype=torch.float64),
    )
    seen = [Seen(probe, Outcome()) for probe in asked]
    left = [
        [one.probe.claim for one in part]
        for part in parts(seen, [asked[0], asked[2]])
    ]
    assert left == [
        ["plain", "masked", "both"],
        ["plain", "precise"],
        ["plain", "masked", "precise"],
        ["plain", "precise"],
    ]


def test_where_all_that_fails_has_a_mask_masks_alone_are_a_part():
    asked = (
        Probe("plain", ROWS),
        Probe("masked", ROWS, needs=("mask",)),
        Probe("padded", ROWS, needs=("padding",)),
    )
    seen = [Seen(probe, Outcome()) for probe in asked]
    *_, last = parts(seen, asked[1:2])
    assert [one.probe.claim for one in last] == ["masked", "padded"]


def test_a_mistake_beside_one_that_shows_in_masks_alone_is_told():
    """Neither of the two had agreed on half of all that failed."""

    def attend(q, k, v, mask=None):
        scores = q @ k.mT
        if mask is not None:
            scores = scores * mask - 0.37 * ~mask
        return scores.softmax(dim=-1) @ v

    report = here(attend, kind="attention", layout="any", mask="keep")
    assert report.likeness is not None, report
    assert report.likeness.name == "no scale"
    assert 0 < report.alike_on < len(report.findings)


class Heads(nn.Module):
    """A list of heads, joined from the last to the first, in float32."""

    def __init__(self):
        super().__init__()
        self.maps = nn.ModuleDict(
            {name: nn.Linear(6, 6) for name in ("q", "k", "v", "out")}
        )

    def forward(self, x):
        parts = (self.maps[name](x) for name in "qkv")
        q, k, v = (y.unflatten(-1, (3, 2)).transpose(1, 2) for y in parts)
        heads = attention(q.float(), k.float(), v.float()).to(x.dtype)
        return self.maps["out"](heads.flip(1).transpose(1, 2).flatten(-2))


def test_what_is_seen_in_single_precision_has_its_name():
    """In float64 it was another one, too, and so it had none at all."""
    report = here(Heads(), kind="self-attention", n_heads=3, causal=False)
    found = report.mistake or report.likeness
    assert found is not None, report
    assert found.name == "merged in the other order"
