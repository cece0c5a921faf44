"""What gives itself away without any mistake to compare it with."""

import functools

import pytest
import torch

from selfattn import attention
from selfattn.doctor import examine
from selfattn.positions import rope

here = functools.partial(examine, time_limit=None)


def test_two_axes_that_are_exchanged_are_named_as_that():
    """Another shape was all that was said of a slip in an einsum."""

    def on_its_side(q, k, v):
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
        return torch.einsum("bhij,bhjd->bhdi", weights, v)

    told = {"layout": "BHND", "kind": "attention"}
    report = here(on_its_side, **told)
    assert report.mistake.name == "axes in another order"

    def shorter(q, k, v):
        return attention(q, k, v)[..., 1:, :]

    assert here(shorter, **told).mistake is None


def test_another_type_is_named_as_that_with_which():
    """It was right in every number, and wrong on ten of eleven probes."""
    rotated = here(
        lambda x, offset=0: rope(x, offset=offset).double(),
        kind="rope",
        pairs="neighbours",
    )
    assert rotated.mistake.name == "float64 comes back"  # rope's own name
    report = here(
        lambda q, k, v: attention(q, k, v).double(), kind="attention"
    )
    assert report.mistake.name == "another type returned"
    assert "torch.float64" in report.mistake.symptom


def test_what_autograd_cannot_undo_is_written_in_place():
    """No input is changed; but the gradient needs what was there before."""

    def attend(q, k, v):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
        powers /= powers.sum(dim=-1, keepdim=True)
        return powers @ v

    report = here(attend, kind="attention", layout="any")
    assert report.mistake is not None, report
    assert report.mistake.name == "changed in place"


class BackToFront(torch.autograd.Function):
    """Attention, with a way back of its own, which gives what is asked."""

    @staticmethod
    def forward(ctx, q, k, v, way_back):
        ctx.way_back = way_back
        ctx.save_for_backward(q, k, v)
        return attention(q, k, v)

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
            made = attention(*inputs)
            found = torch.autograd.grad(made, inputs, grad)
        return *ctx.way_back(*found), None


def with_way_back(way_back):
    return lambda q, k, v: BackToFront.apply(q, k, v, way_back)


def to_nan(q, k, v):
    return q, k * torch.nan, v


def no_way(q, k, v):
    raise RuntimeError("there is no way back")


@pytest.mark.parametrize("way_back", [to_nan, no_way])
def test_a_way_back_that_gives_nan_or_raises_was_not_cut_off(way_back):
    """It was called detached, and sent off to look for a .detach()."""
    told = {"kind": "attention", "layout": "any"}
    assert here(with_way_back(lambda *found: found), **told).passed
    report = here(with_way_back(way_back), **told)
    assert {f.difference.sort for f in report.findings} == {"gradient"}
    assert report.mistake is None, report
