"""Functions that can do less than others, and conventions of rows that see
nothing: neither is a fault."""

import math

import torch

from selfattn.doctor import examine

ONE_TEXT = {
    "kind": "attention",
    "layout": "N D",
    "mask": "keep",
    "mask_axes": "NN",
    "empty_row": "zeros",
    "dtypes": ("float64", "float32"),
}


def edges(q, k, v, mask=None):
    """Attention of one text; who sees nobody is told nothing."""
    if q.ndim > 2:
        raise ValueError("one text at a time")
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is None:
        mask = torch.ones_like(scores).bool()
    weights = scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights @ v


def upside_down(q, k, v, mask=None):
    """The same, but what may be seen is hidden."""
    return edges(q, k, v, None if mask is None else ~mask)


def test_what_cannot_be_asked_is_no_fault():
    """Of a batch nothing can be asked, whatever else a probe is about."""
    report = examine(edges, **ONE_TEXT)
    assert report.passed, str(report)
    assert "axes for batch and heads" in str(report)
    found = examine(upside_down, **ONE_TEXT).mistake
    assert found is not None and found.name == "mask upside down"


def capped(fill):
    """Attention whose scores are capped, and hidden by what is added."""

    def attend(q, k, v, mask=None):
        scores = 20 * (q @ k.mT / math.sqrt(q.shape[-1]) / 20).tanh()
        if mask is not None:
            least = torch.finfo(scores.dtype).min
            scores = fill(scores, mask, least)
        return scores.softmax(-1) @ v

    return attend


def by_adding(scores, mask, least):
    return scores + torch.zeros_like(scores).masked_fill(~mask, least)


def by_filling(scores, mask, least):
    return scores.masked_fill(~mask, least)


def by_adding_nothing_back(scores, mask, least):
    return by_adding(scores.detach(), mask, least)


def test_a_row_that_sees_nothing_may_have_other_gradients():
    """Its average is the same whether its scores are lost in what is added
    or replaced; its gradients are not, and nobody learns from either."""
    told = {"kind": "attention", "mask": "keep", "cap": 20.0}
    told |= {"empty_row": "average", "dtypes": ("float32", "float64")}
    for fill in (by_adding, by_filling):
        report = examine(capped(fill), **told)
        assert report.passed, str(report)
    found = examine(capped(by_adding_nothing_back), **told).mistake
    assert found is not None and found.name == "detached"
