"""In which order strangers take their arguments, and in how many axes."""

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds import trial_calls

here = functools.partial(examine, time_limit=None)
norm = functools.partial(here, kind="layer-norm", eps=1e-5)
softmax = functools.partial(here, kind="softmax")


def learnt_first(weight, bias, x):
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def with_a_shape(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    return F.layer_norm(x, normalized_shape, weight, bias, eps)


def eps_in_between(x, eps, gain, shift):
    return F.layer_norm(x, x.shape[-1:], gain, shift, eps)


class InThreeAxes(nn.Module):
    """What it has learnt has axes for texts and tokens, too."""

    def __init__(self, d=7, wrong=False):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1, 1, d))
        self.beta = nn.Parameter(torch.zeros(1, 1, d))
        self.wrong = wrong

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        square = centred.square().mean(-1, keepdim=True)
        if self.wrong:
            return centred / square.sqrt() * self.gamma + self.beta
        return centred * torch.rsqrt(square + 1e-5) * self.gamma + self.beta


class OfTexts(nn.LayerNorm):
    def forward(self, x):
        _, _, d = x.shape
        return F.layer_norm(x, (d,), self.weight, self.bias, self.eps)


@pytest.mark.parametrize(
    "patient",
    [learnt_first, with_a_shape, eps_in_between, InThreeAxes(), OfTexts(7)],
)
def test_a_norm_may_take_its_arguments_in_another_order(patient):
    report = norm(patient)
    assert report.passed, report
    assert here(patient, kind="layer-norm").passed


def test_what_is_wrong_is_found_in_any_order():
    def learnt_first_and_no_shift(weight, bias, x):
        return F.layer_norm(x, x.shape[-1:], weight, 0 * bias)

    report = norm(learnt_first_and_no_shift)
    assert report.mistake.name == "no shift", report
    assert norm(InThreeAxes(wrong=True)).mistake.name == "no eps"


def test_code_to_copy_keeps_the_order():
    def learnt_first_of_three(weight, bias, x):
        return F.layer_norm(x, x.shape[-1:], weight, bias).clamp(max=1.25)

    report = norm(learnt_first_of_three)
    line = (
        "norm = lambda x, weight, bias: "
        "learnt_first_of_three(weight=weight, bias=bias, x=x)"
    )
    code = " ".join(report.snippet.split())
    assert line in code, code


def test_the_eps_of_a_function_is_the_one_that_was_told():
    def by_another(x, weight, bias):
        return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-3)

    assert here(by_another, kind="layer-norm").passed
    assert norm(by_another).findings


def test_the_eps_that_was_told_is_the_one_by_default():
    def by_default(x, weight, bias, eps=1e-3):
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps)

    assert here(by_default, kind="layer-norm").passed
    assert here(by_default, kind="layer-norm", eps=1e-3).passed

    def learnt_first(weight, bias, x, *, epsilon=1e-3):
        return by_default(x, weight, bias, epsilon)

    assert norm(by_default).findings
    assert here(learnt_first, kind="layer-norm", eps=1e-3).passed
    assert norm(learnt_first).findings


def test_a_length_is_divided_by_the_root_of_the_width():
    def by_the_width(x, weight, bias, eps=1e-5):
        centred = x - x.mean(-1, keepdim=True)
        length = centred.norm(dim=-1, keepdim=True) / x.shape[-1]
        return centred / (length**2 + eps).sqrt() * weight + bias

    report = here(by_the_width, kind="layer-norm")
    assert report.mistake.name == "width without its root", report


def a_mask_first(mask, scores):
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


def an_axis_first(dim, x):
    return x.softmax(dim)


def a_mask_by_name(x, *, where=None):
    if where is not None:
        x = x.masked_fill(~where, -torch.inf)
    return x.softmax(-1)


def a_row_a_text(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, :], -torch.inf)
    return scores.softmax(-1)


def of_heads(x, mask=None):
    _, _, _, _ = x.shape
    if mask is not None:
        x = x.masked_fill(~mask, -torch.inf)
    return x.softmax(-1)


def one_row(x):
    assert x.ndim == 1
    powers = [(value - max(x)).exp() for value in x]
    return torch.stack(powers) / sum(powers)


@pytest.mark.parametrize(
    "patient",
    [
        a_mask_first,
        an_axis_first,
        a_mask_by_name,
        a_row_a_text,
        of_heads,
        one_row,
    ],
)
def test_scores_may_come_second_and_in_other_axes(patient):
    report = softmax(patient, empty_row="nan")
    assert report.passed, report
    assert softmax(patient).passed


def test_what_is_wrong_is_found_there_too():
    def upside_down(mask, scores):
        return scores.masked_fill(mask, -torch.inf).softmax(-1)

    def for_all_texts(scores, mask=None):
        if mask is not None:
            scores = scores.masked_fill(~mask[:1, None, :], -torch.inf)
        return scores.softmax(-1)

    def over_queries(x):
        _, _, _, _ = x.shape
        return x.softmax(-2)

    assert softmax(upside_down, mask="keep", empty_row="nan").findings
    assert softmax(for_all_texts, mask="keep", empty_row="nan").findings
    assert softmax(over_queries).mistake.name == "wrong axis"


def test_a_mask_that_was_told_is_the_only_other_argument():
    def renamed(x, hidden=None):
        if hidden is not None:
            x = x.masked_fill(hidden, -torch.inf)
        return x.softmax(-1)

    report = softmax(renamed, mask="block", empty_row="nan")
    assert report.passed, report
    assert softmax(renamed).probes < report.probes


def test_of_two_mistakes_the_one_that_shows_comes_first():
    """What fails in float16 alone is the lesser of two."""

    def by_columns(scores, valid_lens):
        if valid_lens is None:
            return scores.softmax(-1)
        hidden = torch.arange(scores.shape[-1]) >= valid_lens[:, None, None]
        return scores.masked_fill(hidden, -1e6).softmax(-2)

    report = softmax(by_columns, mask="lengths", empty_row="average")
    assert report.mistake.name == "softmax over queries", report
    assert report.mistake.also.name == "a billion in float16"


def test_axes_are_counted_by_calls():
    assert trial_calls.wanted(lambda x: x, 4) == 2
    assert trial_calls.wanted(lambda x: x[None], 4) == 2
    assert trial_calls.wanted(lambda x: x + torch.ones(1, 1, 1), 4) == 3
    assert not trial_calls.takes(lambda x: x[..., 0], 4, 2)
    assert trial_calls.lifted(lambda x: x.sum(0), 3)(torch.ones(2)).ndim == 2
