"""The kind `attention`: functions of q, k and v, however they are called."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F

from selfattn import attention, flash_attention, fused_attention
from selfattn.doctor import diagnose, examine
from selfattn.doctor.engine.choice import decide
from selfattn.doctor.engine.diagnosis import Case
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.report import Difference, Finding, Report
from selfattn.doctor.self_test import banks

here = functools.partial(examine, kind="attention", time_limit=None)


def plain(q, k, v, mask=None, fill=-math.inf, scale=None):
    """As one writes it, with zeros for empty rows."""
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, fill)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return weights @ v


def with_weights(query, key, value, attn_mask=None):
    weights = plain(query, key, torch.eye(key.shape[-2]).to(key), attn_mask)
    return weights @ value, weights


def tokens_before_heads(q, k, v, mask=None):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    if q.ndim != 4:
        raise ValueError("four axes are asked for")
    return plain(q, k, v, mask).transpose(1, 2)


def three_axes_alone(q, k, v, mask=None):
    output = torch.stack([torch.zeros(q.shape[1], v.shape[2])] * len(q)).to(q)
    if q.ndim != 3:
        raise ValueError("three axes are asked for")
    return output + torch.bmm(
        plain(q, k, torch.eye(k.shape[1]).to(k).expand(len(q), -1, -1), mask),
        v,
    )


def four_axes_alone(q, k, v, mask=None):
    if q.ndim != 4:
        raise ValueError("four axes are asked for")
    return plain(q, k, v, mask)


def true_forbids(q, k, v, mask=None):
    return plain(q, k, v, None if mask is None else ~mask)


def mask_is_added(q, k, v, mask=None):
    if mask is None:
        return plain(q, k, v)
    if not mask.is_floating_point():
        raise TypeError("a mask is added")
    return plain(q, k, v, mask == 0)


def other_order(value, key, query):
    return plain(query, key, value)


def causal_too(q, k, v, *, is_causal=False, attn_mask=None):
    return attention(q, k, v, mask=attn_mask, causal=is_causal)


HEALTHY = [
    (attention, {"layout": "any", "mask": "keep"}),
    (fused_attention, {"layout": "any", "mask": "keep"}),
    (flash_attention, {"layout": "any", "mask": "keep"}),
    (plain, {"layout": "any", "mask": "keep"}),
    (F.scaled_dot_product_attention, {"layout": "BHND", "mask": "keep"}),
    (with_weights, {"layout": "any", "mask": "keep"}),
    (tokens_before_heads, {"layout": "BNHD", "mask": "keep"}),
    (three_axes_alone, {"layout": "BND", "mask": "keep"}),
    (four_axes_alone, {"layout": "BHND", "mask": "keep"}),
    (true_forbids, {"layout": "any", "mask": "block"}),
    (mask_is_added, {"layout": "any", "mask": "add"}),
    (other_order, {"layout": "any"}),
    (causal_too, {"layout": "any", "mask": "keep"}),
    (functools.partial(plain, fill=-1e30), {"layout": "any"}),
]


@pytest.mark.parametrize(
    ("attend", "found"),
    HEALTHY,
    ids=[getattr(a, "__name__", "partial") for a, _ in HEALTHY],
)
def test_what_is_right_is_healthy_and_its_form_is_found_out(attend, found):
    report = here(attend)
    assert report.passed, report
    assert found.items() <= report.facts.items()
    assert report.exit_code == 0


def test_what_is_found_can_be_overridden():
    report = here(true_forbids, mask="keep")
    assert report.mistake is not None
    assert report.mistake.name == "mask upside down"
    assert "mask" not in report.facts


def dressed(answer, layout, meaning):
    """A wrong answer of the bank in another layout and meaning of masks."""

    def attend(query, key, value, attn_mask=None, is_causal=False):
        if layout == "BHND" and query.ndim != 4:
            raise ValueError("four axes are asked for")
        if layout == "BNHD":
            if query.ndim != 4:
                raise ValueError("four axes are asked for")
            query, key, value = (
                x.transpose(1, 2) for x in (query, key, value)
            )
        if attn_mask is not None and meaning == "block":
            attn_mask = ~attn_mask
        output = answer(query, key, value, mask=attn_mask, causal=is_causal)
        return output.transpose(1, 2) if layout == "BNHD" else output

    return attend


@pytest.mark.parametrize(
    ("layout", "meaning"), [("BHND", "keep"), ("BNHD", "block")]
)
@pytest.mark.parametrize(
    "name",
    [
        "no scale",
        "divided by d",
        "the output is scaled",
        "scaled by the width of v",
        "mask ignored",
        "mask after softmax",
        "masked with zero",
        "sigmoid instead of softmax",
        "causal flag ignored",
        "one too many",
        "detached",
    ],
)
def test_a_mistake_has_its_name_in_every_layout(layout, meaning, name):
    (known,) = (m for m in banks()["attention"].mistakes if m.name == name)
    report = here(dressed(known.answer, layout, meaning))
    assert report.mistake is not None, report
    assert report.mistake.name == name


def uniform(q, k, v, mask=None):
    return plain(q, k, v, mask, fill=torch.finfo(q.dtype).min)


def not_a_number(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1) @ v


def test_a_convention_is_a_remark_and_a_fault_where_ours_is_asked_for():
    report = here(not_a_number)
    assert report.passed
    assert [m.name for m in report.remarks] == ["empty row gives nan"]
    assert "A convention that is not the book's" in str(report)
    strict = here(not_a_number, empty_row="zeros")
    assert strict.mistake is not None
    assert strict.mistake.name == "empty row gives nan"
    assert here(not_a_number, empty_row="nan").passed


def test_the_alignment_of_pytorch_is_a_convention_too():
    fused = F.scaled_dot_product_attention
    assert [m.name for m in here(fused).remarks] == ["first on first"]
    assert here(fused, alignment="last").mistake.name == "first on first"
    assert here(fused, alignment="first").passed


def test_what_is_refused_is_not_asked_unless_it_was_said_to_be_taken():
    def as_many_keys_as_queries(q, k, v):
        if q.shape != k.shape or k.shape != v.shape:
            raise ValueError("queries, keys and values must have one shape")
        return plain(q, k, v)

    report = here(as_many_keys_as_queries)
    assert report.passed
    assert "another number of keys than of queries" in report.not_asked
    claimed = here(
        as_many_keys_as_queries, takes=["length", "single", "heads"]
    )
    assert not claimed.passed
    assert "must have one shape" in claimed.findings[0].difference.sentence


def test_a_refusal_of_what_it_has_an_argument_for_is_a_fault():
    def no_masks_yet(q, k, v, mask=None):
        if mask is not None:
            raise ValueError("masks are for later")
        return plain(q, k, v)

    report = here(no_masks_yet)
    assert not report.passed
    assert "masks are for later" in str(report)


def test_it_asks_when_readings_disagree():
    """Two readings under which as much is right, and another mistake each."""
    kind, bank = find_kind("attention"), banks()["attention"]

    def case(layout, mistake):
        wrong = Finding(bank.probes[0], Difference("value", "It is wrong."))
        facts = {"layout": layout}
        said = Report("attention", 9, (wrong,), mistake=mistake, facts=facts)
        return Case(None, bank, [], said, {})

    one, other = bank.mistakes[:2]
    asked = decide([case("BHND", one), case("BNHD", other)], kind).report
    assert not asked.passed and asked.exit_code == 2
    assert "Say layout, the axes of q, k and v: " in asked.question
    assert "'BHND' (batch, heads, tokens, features)" in asked.question
    alike = decide([case("BHND", one), case("BNHD", one)], kind).report
    assert alike.mistake is one and alike.assumed == {"layout": "BHND"}


def test_an_unknown_mistake_is_shown_on_the_smallest_input():
    report = here(functools.partial(plain, scale=0.25))
    assert report.mistake is None and report.likeness is None
    assert report.findings[0].probe.claim == "it is softmax(q kᵀ / √d) v"
    # One query, two keys and values of one feature: what shows a scale.
    assert "q=q, k=k, v=v" in report.snippet
    scope = {"torch": torch}
    lines = [line.strip() for line in report.snippet.splitlines()]
    exec("\n".join(lines[:3]), scope)
    assert [scope[name].numel() for name in "qkv"] == [1, 2, 2]


def test_the_reference_agrees_with_pytorch():
    bank = banks()["attention"]
    assert diagnose(fused_attention, bank).passed


def test_it_must_be_a_function():
    report = here(torch.zeros(3))
    assert report.question == "A function is asked for: hand over itself."


def strictly_causal(hide, takes_a_mask=True):
    """A token may not look at itself; `hide` is how it may not."""

    def attend(q, k, v, mask=None, causal=False):
        n_q, n_k = q.shape[-2], k.shape[-2]
        if causal:
            before = torch.ones(n_q, n_k).tril(diagonal=n_k - n_q - 1) == 1
            mask = before if mask is None else mask & before
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = hide(scores, mask)
        return scores.softmax(dim=-1) @ v

    def without_mask(q, k, v, causal=False):
        return attend(q, k, v, causal=causal)

    return attend if takes_a_mask else without_mask


@pytest.mark.parametrize("takes_a_mask", [True, False])
@pytest.mark.parametrize(
    ("hide", "name"),
    [
        (
            lambda scores, mask: scores.masked_fill(~mask, -1e9),
            "not itself and the first averages",
        ),
        (
            lambda scores, mask: scores.masked_fill(~mask, -1e4),
            "not itself and the first averages",
        ),
        (
            lambda scores, mask: scores.masked_fill(~mask, -math.inf),
            "not itself and the first is nan",
        ),
    ],
    ids=["a billion", "ten thousand", "infinity"],
)
def test_a_strictly_causal_mask_has_its_name_whatever_hides(
    hide, name, takes_a_mask
):
    report = here(strictly_causal(hide, takes_a_mask), layout="any")
    assert report.mistake is not None, report
    assert report.mistake.name == name
    assert "diagonal=-1" in report.mistake.cause


def test_a_strictly_causal_mask_has_its_name_where_numbers_are_added():
    def less(scores, mask, much):
        return scores + (~mask).to(scores.dtype) * -much

    for much, name in (
        (1e9, "not itself and a billion subtracted"),
        (1e4, "not itself and the first sees all"),
    ):
        hide = functools.partial(less, much=much)
        report = here(strictly_causal(hide), layout="any", mask="keep")
        assert report.mistake is not None, report
        assert report.mistake.name == name


def test_one_name_is_told_and_the_others_are_found():
    def attend(query, key, value, verboten=None):
        return true_forbids(query, key, value, verboten)

    report = here(attend, names={"mask": "verboten"})
    assert report.passed and report.facts["mask"] == "block", report
    assert "a mask" not in report.not_asked
