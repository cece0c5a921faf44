"""The doctor on functions that make masks, in whatever convention."""

import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.masks import causal_mask, padding_mask


def examined(thing, kind, **facts):
    return examine(thing, kind=kind, time_limit=None, **facts)


def upper(n):
    return torch.ones(n, n).triu(1).bool()


def lower_with_axes(n):
    return torch.ones(1, 1, n, n).tril()


def top_left(n_q, n_k):
    return torch.ones(n_q, n_k, dtype=torch.bool).tril()


def test_the_meaning_of_a_causal_mask_is_found_out():
    for thing, meaning in (
        (causal_mask, "keep"),
        (nn.Transformer.generate_square_subsequent_mask, "add"),
        (upper, "block"),
        (lower_with_axes, "ones"),
    ):
        report = examined(thing, "causal-mask")
        assert report.passed, report
        assert report.facts["mask"] == meaning


def test_a_causal_mask_is_held_to_what_was_said():
    report = examined(upper, "causal-mask", mask="keep")
    assert report.mistake.name == "upside down"
    report = examined(top_left, "causal-mask")
    assert report.passed
    assert [m.name for m in report.remarks] == ["first on first"]
    report = examined(top_left, "causal-mask", alignment="last")
    assert report.mistake.name == "first on first"


def real(tokens, pad):
    return (tokens != pad)[:, None, None]


def padded(tokens, pad):
    return tokens == pad


def with_three_axes(tokens):
    return (tokens != 0)[:, None]


def too_long(lengths, n):
    return torch.arange(n) <= lengths[:, None]


def test_the_form_of_a_padding_mask_is_found_out():
    for thing, meaning, axes, of in (
        (padding_mask, "keep", "B11N", "lengths"),
        (real, "keep", "B11N", "tokens"),
        (padded, "block", "BN", "tokens"),
        (with_three_axes, "keep", "B1N", "tokens"),
    ):
        report = examined(thing, "padding-mask")
        assert report.passed, report
        assert report.facts == {"mask": meaning, "axes": axes, "of": of}


def test_a_padding_mask_is_held_to_what_was_said():
    report = examined(with_three_axes, "padding-mask", axes="B11N")
    assert report.mistake.name == "without an axis for heads"
    report = examined(too_long, "padding-mask", axes="BN", mask="keep")
    assert report.mistake.name == "one too many"
    report = examined(padded, "padding-mask", axes="BN", mask="keep")
    assert report.mistake.name == "upside down"
