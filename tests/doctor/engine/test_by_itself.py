"""What gives itself away without any mistake to compare it with."""

import functools

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
