"""The doctor: it passes what is right, and names what is wrong.

The exercises are tested all alike: one more of them needs no more tests.
"""

import contextlib
import dataclasses
import functools
import io
import math
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from selfattn import attention, fused_attention
from selfattn.doctor import (
    Exercise,
    Probe,
    check,
    complaints,
    diagnose,
    examine,
    names,
    prediction,
    self_test,
    survival,
)
from selfattn.doctor import __path__ as folder
from selfattn.doctor.engine import matching, shrinking
from selfattn.doctor.engine.outcome import observe
from selfattn.doctor.exercise import mistake, mistaken_value
from selfattn.doctor.exercises import find
from selfattn.doctor.report import Difference

EXERCISES = names()
ATTENTION = "dot_product/attention"
WEIGHTS = "dot_product/weights"
SOFTMAX = "dot_product/softmax"
LOOKUP = "dot_product/lookup"
DOUBLE_KEY = "dot_product/double_key"
NUMBERS = [
    name
    for name in EXERCISES
    if (one := find(name)).predicted and not isinstance(one.solution, str)
]


# --- Every exercise, and its bank ----------------------------------------


@pytest.fixture(scope="module")
def table():
    """What every mistake is called, found out once for two tests."""
    return survival()


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_accepts_its_solution_and_names_every_mistake(
    name, table, monkeypatch
):
    monkeypatch.setattr(self_test, "names_given", lambda one: table[one.name])
    assert complaints(find(name)) == []


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_is_found_under_its_name(name):
    chapter, _, rest = name.partition("/")
    assert find(name).name == name and chapter and rest.isidentifier()
    titles = [mistake.name for mistake in find(name).mistakes]
    assert len(set(titles)) == len(titles)


SPOILT = {
    "ones": torch.ones_like,  # a mask that hides nothing
    "turned": lambda x: x.mT if x.ndim > 1 else x.flip(0),
    "a row less": lambda x: x[:-1] if x.ndim else x[None],
    "another type": lambda x: x.float() if x.dtype == torch.bool else x > 0,
}
ODD = ("a word", None, [], [[]], math.nan, 1j, 10**400, {}, torch.ones(0))


@pytest.mark.parametrize("name", EXERCISES)
def test_any_wrong_answer_gets_a_report(name):
    """A mask that hid nothing made the checker itself fail, at a boolean."""
    exercise = find(name)
    if not callable(exercise.solution):
        for odd in ODD:
            assert not diagnose(odd, exercise).passed, odd
        return
    for how, spoil in SPOILT.items():
        changed = []

        def wrong(*given, spoil=spoil, changed=changed, **named):
            right = exercise.solution(*given, **named)
            if not isinstance(right, torch.Tensor):
                return right
            made = spoil(right)
            same = made.shape == right.shape and made.dtype == right.dtype
            changed.append(not (same and made.equal(right)))
            return made

        report = diagnose(functools.wraps(exercise.solution)(wrong), exercise)
        assert str(report), how
        assert report.passed == (not any(changed)), how


@pytest.mark.parametrize("name", EXERCISES)
def test_every_probe_can_be_made_small_and_solved(name):
    exercise = find(name)
    for probe in exercise.probes:
        ones = {a: 1 for a in probe.axes() if a not in probe.fixed}
        outcome = observe(exercise, exercise.solution, probe, **ones)
        assert outcome.error is None, probe.claim
        assert outcome.gradient_error is None, probe.claim
        if isinstance(outcome.value, torch.Tensor):
            assert not outcome.value.isnan().any(), probe.claim


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("gap", [None, ...])
def test_a_stub_is_no_mistake(name, gap, capsys):
    check(gap, exercise=name)
    assert capsys.readouterr().out == f"○ {name}: Not answered yet\n"


def test_survival_lists_every_mistake_under_its_own_name(table):
    assert list(table) == EXERCISES
    for given in table.values():
        assert all(title == named for title, named in given.items())


def test_what_names_shapes_is_checked_and_the_doctor_names_none(pytestconfig):
    """The doctor is left out of the check, so it may have no shapes.

    So is what compares calls with signatures itself: it runs in functions
    that are compiled, where a check that draws at random cannot go along.
    """
    doctor = Path(folder[0])
    *checked, _ = pytestconfig.getoption("jaxtyping_packages").split(",")
    parts = {path.stem for path in doctor.parent.iterdir()}
    parts = {part for part in parts if part.isidentifier()} - {"doctor"}
    parts -= {"__init__", "__pycache__", "py", "signatures", "mismatches"}
    parts -= {"wrapped", "called"}
    assert {*checked} == {f"selfattn.{part}" for part in parts}
    texts = [path.read_text("utf-8") for path in doctor.rglob("*.py")]
    named = re.compile(r"^\s*(from|import) jaxtyping", re.MULTILINE)
    assert not any(named.search(text) for text in texts)


# --- The chain's own tests: what is planted turns it red -----------------


def spoilt(**parts):
    """A copy of an exercise, with other parts."""
    return dataclasses.replace(find(WEIGHTS), **parts)


def test_a_copy_that_is_not_spoilt_has_no_complaint():
    assert complaints(spoilt()) == []


def test_a_checker_that_accepts_everything_turns_it_red(monkeypatch):
    monkeypatch.setattr(matching, "difference", lambda *_: None)
    found = complaints(spoilt())
    assert f"{WEIGHTS}: “no scale” is called (passed)" in found


def test_a_checker_that_rejects_everything_turns_it_red(monkeypatch):
    wrong = Difference("value", "It is wrong.")
    monkeypatch.setattr(matching, "difference", lambda *_: wrong)
    assert "its own solution does not pass" in complaints(spoilt())[0]


def test_probes_that_are_too_easy_turn_it_red():
    found = complaints(spoilt(probes=find(WEIGHTS).probes[:1]))
    assert any("softmax over axis 1” is called (passed)" in x for x in found)


def test_a_tolerance_that_is_too_large_turns_it_red():
    lax = tuple(
        dataclasses.replace(probe, tolerance=1.0)
        for probe in find(WEIGHTS).probes
    )
    found = complaints(spoilt(probes=lax))
    assert any("is called (passed)" in x for x in found)


def test_a_mistake_that_is_right_turns_it_red():
    @mistake
    def nothing_wrong(q, k):
        """It is wrong.

        Cause: It is not.
        Cure: None.
        """
        return (q / math.sqrt(q.shape[-1]) @ k.mT).softmax(dim=-1)

    bank = (*find(WEIGHTS).mistakes, nothing_wrong)
    found = complaints(spoilt(mistakes=bank))
    assert found == [f"{WEIGHTS}: “nothing wrong” is called (passed)"]


def test_a_mistake_without_words_or_that_is_there_already_turns_it_red():
    @mistake
    def again(q, k):
        return torch.softmax(q @ k.mT, -1)

    bank = (*find(WEIGHTS).mistakes, again)
    assert complaints(spoilt(mistakes=bank)) == [
        f"{WEIGHTS}: “again” lacks symptom, cause or cure",
        f"{WEIGHTS}: “again” is called no scale",
        f"{WEIGHTS}: “no scale” and “again” agree on every probe",
    ]


def test_a_bank_that_is_too_small_turns_it_red():
    few = find(WEIGHTS).mistakes[:7]
    found = complaints(spoilt(mistakes=few))
    assert "at least 8 mistakes, but it names 7" in found[0]


# --- Right answers, written otherwise ------------------------------------


def by_loops(q, k, v, mask=None):
    """One query at a time, one key at a time, in plain Python numbers."""
    if q.ndim > 2:
        masks = [mask] * len(q)
        if mask is not None and mask.ndim > 2:
            masks = list(mask)
        return torch.stack(
            [by_loops(*one) for one in zip(q, k, v, masks, strict=True)]
        )
    shape = (q.shape[0], k.shape[0])
    allowed = torch.ones(shape) if mask is None else mask.expand(shape)
    rows = []
    for i, query in enumerate(q):
        seen = [j for j in range(k.shape[0]) if allowed[i, j]]
        scores = [(query * k[j]).sum() / len(query) ** 0.5 for j in seen]
        powers = [(s - max(scores)).exp() for s in scores]
        row = 0 * v[0] + 0 * query.sum()
        for j, power in zip(seen, powers, strict=True):
            row = row + power / sum(powers) * v[j]
        rows.append(row)
    return torch.stack(rows)


def by_einsum(q, k, v, mask=None):
    scores = torch.einsum("...id,...jd->...ij", q * q.shape[-1] ** -0.5, k)
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)
    return torch.einsum("...ij,...jd->...id", weights, v)


def in_float64(q, k, v, mask=None):
    return attention(q.double(), k.double(), v.double(), mask=mask).to(q.dtype)


def tiny_instead_of_infinite(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / k.size(-1) ** 0.5
    if mask is None:
        return F.softmax(scores, dim=-1) @ v
    weights = scores.masked_fill(~mask, torch.finfo(q.dtype).min).softmax(-1)
    return weights.masked_fill(~mask, 0) @ v


class AsModule(torch.nn.Module):
    def forward(self, q, k, v, *, mask=None):
        return attention(q, k, v, mask=mask)


def by_online_softmax(scores):
    highest = torch.full(
        scores.shape[:-1], torch.finfo(scores.dtype).min, dtype=scores.dtype
    )
    total = torch.zeros_like(highest)
    for column in scores.unbind(-1):
        new = torch.maximum(highest, column)
        total = total * (highest - new).exp() + (column - new).exp()
        highest = new
    return (scores - highest[..., None]).exp() / total[..., None]


RIGHT = [
    (ATTENTION, by_loops),
    (ATTENTION, by_einsum),
    (ATTENTION, in_float64),
    (ATTENTION, tiny_instead_of_infinite),
    (ATTENTION, AsModule()),
    (ATTENTION, fused_attention),
    (
        ATTENTION,
        lambda q, k, v, mask=None: F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask
        ),
    ),
    (
        WEIGHTS,
        lambda q, k: torch.softmax(
            q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5, -1
        ),
    ),
    (WEIGHTS, lambda q, k: attention(q, k, torch.eye(k.shape[-2]).to(k))),
    (SOFTMAX, by_online_softmax),
    (SOFTMAX, lambda s: (s - s.logsumexp(-1, keepdim=True)).exp()),
    (SOFTMAX, lambda s: F.softmax(s.double(), -1).to(s.dtype)),
    (
        LOOKUP,
        lambda query, keys, values, sharpness: torch.einsum(
            "n,nd->d",
            F.softmax(torch.mv(keys, query) * sharpness, 0),
            values,
        ),
    ),
    (
        LOOKUP,
        lambda query, keys, values, sharpness: F.scaled_dot_product_attention(
            query[None], keys, values, scale=sharpness
        )[0],
    ),
    (DOUBLE_KEY, [0.102, 0.848, 0.05]),
    (DOUBLE_KEY, (0.10, 0.85, 0.05)),
    (DOUBLE_KEY, torch.tensor([0.1017, 0.8482, 0.0501])),
    (DOUBLE_KEY, torch.tensor([0.1017, 0.8482, 0.0501]).numpy()),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_a_right_answer_passes_however_it_is_written(name, answer):
    report = examine(answer, exercise=name)
    assert report.passed, report


# --- Known mistakes, written otherwise -----------------------------------


def late(q, k, v, mask=None):
    weights = torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return torch.matmul(weights, v)


def plain_minus_infinity(q, k, v, mask=None):
    scores = torch.einsum("...id,...jd->...ij", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + torch.zeros_like(mask, dtype=q.dtype).masked_fill(
            ~mask, -torch.inf
        )
    return F.softmax(scores, dim=-1) @ v


def lowest_number(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(q.dtype).min)
    return scores.softmax(dim=-1) @ v


def upside_down(q, k, v, mask=None):
    return by_einsum(q, k, v, None if mask is None else mask.logical_not())


def column_by_column(q, k):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores.mT.softmax(-1).mT


ILL = [
    (ATTENTION, late, "mask after softmax"),
    (ATTENTION, plain_minus_infinity, "empty row gives nan"),
    (ATTENTION, lowest_number, "empty row gives the average"),
    (ATTENTION, upside_down, "mask upside down"),
    (ATTENTION, lambda q, k, v, mask=None: by_loops(q, k, v), "mask ignored"),
    (
        ATTENTION,
        lambda q, k, v, mask=None: by_loops(
            q * q.shape[-1] ** 0.5, k, v, mask
        ),
        "no scale",
    ),
    (WEIGHTS, column_by_column, "softmax over queries"),
    (WEIGHTS, lambda q, k: (q @ k.mT).softmax(-1), "no scale"),
    (SOFTMAX, lambda s: s.exp() / s.exp().sum(-1)[..., None], "overflows"),
    (SOFTMAX, lambda s: F.softmax(s, -2), "wrong axis"),
    (
        LOOKUP,
        lambda query, keys, values, sharpness: values[
            max(range(len(keys)), key=lambda j: float(keys[j] @ query))
        ],
        "hard lookup",
    ),
    (DOUBLE_KEY, [0.284, 0.576, 0.140], "nothing changes"),
    (DOUBLE_KEY, [0.047, 0.936, 0.017], "no scale"),
    (DOUBLE_KEY, [0.180, 0.731, 0.089], "weight doubled and shared"),
    (DOUBLE_KEY, [0.284, 1.152, 0.140], "weight doubled"),
]


@pytest.mark.parametrize(("name", "answer", "mistake"), ILL)
def test_a_known_mistake_has_its_name_however_it_is_written(
    name, answer, mistake
):
    report = examine(answer, exercise=name)
    assert report.mistake is not None, report
    assert report.mistake.name == mistake
    assert str(report).startswith(f"✗ {name}: {mistake}\n")


def max_of_one(scores, dim, keepdim=False):
    """The maximum, whose gradient goes to one of those that are equal."""
    return scores.max(dim=dim, keepdim=keepdim).values


@pytest.mark.parametrize(
    "mistake", find(SOFTMAX).mistakes, ids=lambda one: one.name
)
def test_a_mistake_has_its_name_with_either_maximum(mistake, monkeypatch):
    """Among equal scores `amax` and `max` differ in their gradients: a sum
    over the wrong axis was given no name, only an IndexError, for that."""

    def other(scores):
        monkeypatch.setattr(torch.Tensor, "amax", max_of_one)
        try:
            return mistake.answer(scores)
        finally:
            monkeypatch.undo()

    report = examine(other, exercise=SOFTMAX)
    assert report.mistake is not None and report.mistake.name == mistake.name


# --- Wrong answers that no bank holds ------------------------------------


def only_self(q, k, v, mask=None):
    """It looks up each query's own position, and averages nothing."""
    return v[..., :1, :].expand(*q.shape[:-1], v.shape[-1]).clone()


def first_mask_row_for_all(q, k, v, mask=None):
    return attention(q, k, v, mask=None if mask is None else mask[..., :1, :])


def first_sequence_for_all(q, k, v, mask=None):
    if q.ndim < 3:
        return attention(q, k, v, mask=mask)
    return attention(q, k[:1].expand_as(k), v, mask=mask)


def scale_only_under_a_mask(q, k, v, mask=None):
    if mask is None:
        return (q @ k.mT).softmax(-1) @ v
    return attention(q, k, v, mask=mask)


def leaks_a_little(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -5.0)
    return scores.softmax(-1) @ v


def no_gradient_for_the_keys(q, k, v, mask=None):
    return attention(q, k.detach(), v, mask=mask)


def constant_scale(q, k, v, mask=None):
    return attention(q, k, v, mask=mask, scale=1 / 8)


def no_scale_and_nan(q, k, v, mask=None):
    scores = q @ k.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


def flat_rows_view(q, k, v, mask=None):
    q.view(-1)
    return attention(q, k, v, mask=mask)


STRANGE = [
    (ATTENTION, only_self, "it is softmax(q kᵀ / √d) v"),
    (
        ATTENTION,
        first_mask_row_for_all,
        "a query sees the keys that are True in its row, and no others",
    ),
    (
        ATTENTION,
        first_sequence_for_all,
        "each sequence of a batch is for itself",
    ),
    (ATTENTION, scale_only_under_a_mask, "it is softmax(q kᵀ / √d) v"),
    (
        ATTENTION,
        leaks_a_little,
        "a query sees the keys that are True in its row, and no others",
    ),
    (ATTENTION, no_gradient_for_the_keys, "it is softmax(q kᵀ / √d) v"),
    (ATTENTION, constant_scale, "it is softmax(q kᵀ / √d) v"),
    (
        ATTENTION,
        flat_rows_view,
        "the order in memory does not matter",
    ),
    (
        WEIGHTS,
        lambda q, k: F.gumbel_softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1),
        "it is softmax(q kᵀ / √d)",
    ),
    (
        SOFTMAX,
        lambda s: (s.clamp(-9e3, 9e3) - s.amax(-1, keepdim=True)).exp(),
        "it is exp(s) / sum of exp(s), by rows",
    ),
    (
        LOOKUP,
        lambda query, keys, values, sharpness: (
            (keys @ query).softmax(-1) ** sharpness @ values
        ),
        "a small sharpness flattens",
    ),
]


@pytest.mark.parametrize(("name", "answer", "asks"), STRANGE)
def test_an_unknown_mistake_is_told_by_what_does_not_hold(name, answer, asks):
    report = examine(answer, exercise=name)
    assert not report.passed
    assert report.mistake is None
    assert asks in [finding.probe.claim for finding in report.findings]
    assert report.findings[0].probe.claim in " ".join(str(report).split())


def test_of_two_mistakes_at_once_both_are_told():
    report = examine(no_scale_and_nan, exercise=ATTENTION)
    assert report.mistake is None
    assert report.likeness is not None and report.likeness.name == "no scale"
    assert "a query that may see nothing" in report.findings[0].probe.claim
    assert "NaN" in report.findings[0].difference.sentence


@pytest.mark.parametrize(
    "answer", [leaks_a_little, no_scale_and_nan, constant_scale]
)
def test_the_snippet_shows_the_failure_when_it_is_run(answer):
    lines = examine(answer, exercise=ATTENTION).snippet.splitlines()
    code = [line.strip() for line in lines if "#" not in line]
    comments = [line.strip() for line in lines if "#" in line]
    scope = {"torch": torch, answer.__name__: answer}
    exec("\n".join(code[:-1]), scope)
    yours = eval(code[-1], scope)
    right = eval(code[-1], scope | {answer.__name__: attention})
    shown = "# yours: " + str(
        (yours.double().round(decimals=4) + 0.0).tolist()
    )
    assert not torch.allclose(yours, right)
    assert comments[0][:20] == shown[:20]
    assert "expected" in comments[1]


def test_the_failing_input_is_made_small():
    def wrong_for_three_keys(q, k, v, mask=None):
        return attention(q, k, v, mask=mask) * (2 if k.shape[-2] > 2 else 1)

    report = examine(wrong_for_three_keys, exercise=ATTENTION)
    # One query, three keys and values, one feature each: seven numbers.
    assert report.snippet.count("k = torch.tensor([[") == 1
    scope = {"torch": torch}
    exec("\n".join(x.strip() for x in report.snippet.splitlines()[:3]), scope)
    shapes = [tuple(scope[name].shape) for name in "qkv"]
    assert shapes == [(1, 1), (3, 1), (3, 1)]


def test_patience_ends_after_so_many_trials_or_so_much_work(monkeypatch):
    few = shrinking.Patience(trials=2, seconds=60)
    assert [few.lasts() for _ in range(3)] == [True, True, False]
    assert not shrinking.Patience(trials=9, seconds=0).lasts()
    trials = []

    def counted(*arguments, **sizes):
        trials.append(sizes)
        return observe(*arguments, **sizes)

    monkeypatch.setattr(shrinking, "observe", counted)
    whole = examine(constant_scale, exercise=ATTENTION)
    assert 40 < len(trials) <= 2 * shrinking.TRIALS
    monkeypatch.setattr(shrinking, "Patience", lambda: few)
    before = len(trials)
    hasty = examine(constant_scale, exercise=ATTENTION)
    assert len(trials) == before and not hasty.passed
    sizes = [len(report.snippet) for report in (whole, hasty)]
    assert sizes[0] < sizes[1] or not sizes[1]  # too long to be shown


# --- Answers that are hostile, or no answers at all ----------------------


def raises(*_, **__):
    raise RuntimeError("the cat sat on it\nand a second line")


def exits(*_, **__):
    raise SystemExit(3)


def recurses(*args, **options):
    return recurses(*args, **options)


def fills(value):
    return lambda q, k, v, mask=None: torch.full_like(q @ k.mT @ v, value)


def shrinks(q, k, v, mask=None):
    q.resize_(0)
    return v


def turns_the_mask(q, k, v, mask=None):
    if mask is not None:
        mask.logical_not_()
        return attention(q, k, v, mask=~mask)
    return attention(q, k, v)


def only_if_it_learns(q, k, v, mask=None):
    q.numpy()
    return attention(q, k, v, mask=mask)


class Evil:
    def __eq__(self, other):
        raise ValueError("do not compare me")

    __hash__ = None


HOSTILE = [
    (raises, "It raises RuntimeError: the cat sat on it."),
    (exits, "It raises SystemExit: 3."),
    (recurses, "It raises RecursionError: maximum recursion depth"),
    (lambda q: q, "It raises TypeError: <lambda>() "),
    (fills(math.nan), "It gives NaN in 1 of 1 numbers."),
    (fills(math.inf), "It gives infinity in 1 of 1 numbers."),
    (
        lambda q, k, v, mask=None: q,
        "It returns the shape (5, 11), but (5, 13)",
    ),
    (lambda q, k, v, mask=None: (q, k), "It gives a tuple (a tensor (1, 1),"),
    (lambda q, k, v, mask=None: 3.0, "It gives a float, but a tensor is"),
    (lambda q, k, v, mask=None: v.numpy(), "It gives a ndarray, but"),
    (lambda q, k, v, mask=None: Evil(), "It gives an Evil, but a tensor"),
    (
        lambda q, k, v, mask=None: attention(q, k, v, mask=mask).half(),
        "It returns dtype torch.float16, but torch.float32 is asked for.",
    ),
    (
        lambda q, k, v, mask=None: attention(q, k, v, mask=mask) * (1 + 0j),
        "It returns dtype torch.complex64, but torch.float32 is asked for.",
    ),
    (
        lambda q, k, v, mask=None: attention(q, k, v).to("meta"),
        "It returns device meta, but cpu is asked for.",
    ),
    (
        lambda q, k, v, mask=None: attention(q, k, v).to_sparse(),
        "It returns layout torch.sparse_coo, but torch.strided is asked for.",
    ),
    (
        lambda q, k, v, mask=None: torch.quantize_per_tensor(
            attention(q, k, v).float(), 1.0, 0, torch.qint8
        ),
        "It returns dtype torch.qint8, but torch.float32 is asked for.",
    ),
    (shrinks, "It changes q, which belongs to the caller."),
    (turns_the_mask, "It changes mask, which belongs to the caller."),
    (only_if_it_learns, "When gradients are asked for, it raises Runtime"),
    (torch.zeros(2), "A function is asked for, but this is a tensor (2,)"),
    ("attention", "A function is asked for, but this is a text"),
    (Evil(), "A function is asked for, but this is an Evil"),
]


@pytest.mark.parametrize(("answer", "sentence"), HOSTILE)
def test_a_hostile_answer_gets_a_sentence_and_no_traceback(
    answer, sentence, capsys
):
    check(answer, exercise=ATTENTION)
    out = capsys.readouterr().out
    if sentence.startswith("It returns the shape"):
        sentence = "It returns the shape"  # after shrinking it is smaller
    assert sentence in " ".join(out.split())
    assert out.startswith(f"✗ {ATTENTION}: wrong on ")
    assert "Traceback" not in out and "second line" not in out


def stub_with_dots(q, k, v, mask=None): ...


def stub_with_words(q, k, v, mask=None):
    """Say it in words first."""


def stub_that_says_so(q, k, v, mask=None):
    raise NotImplementedError("yours to write")


def stub_that_returns_dots(q, k, v, mask=None):
    return ...


def lost_result(q, k, v, mask=None):
    output = attention(q, k, v, mask=mask)  # noqa: F841


STUBS = [
    (stub_with_dots, "Not answered yet"),
    (stub_with_words, "Not answered yet"),
    (stub_that_says_so, "Not answered yet"),
    (stub_that_returns_dots, "Not answered yet"),
    (lost_result, "Not answered yet, or is a `return` missing?"),
]


@pytest.mark.parametrize(("answer", "words"), STUBS)
def test_an_unanswered_exercise_says_so(answer, words, capsys):
    check(answer, exercise=ATTENTION)
    assert capsys.readouterr().out == f"○ {ATTENTION}: {words}\n"
    assert not examine(answer, exercise=ATTENTION).passed


def test_a_return_that_is_missing_in_one_branch_is_a_mistake():
    def half(q, k, v, mask=None):
        if mask is None:
            return attention(q, k, v)

    text = " ".join(str(examine(half, exercise=ATTENTION)).split())
    assert "It gives None, but a tensor is asked for." in text


@pytest.mark.parametrize("name", ["dot_product/attend", "nowhere/x", "", 7])
def test_an_unknown_exercise_lists_the_names(name, capsys):
    if isinstance(name, str):
        check(attention, exercise=name)
        out = capsys.readouterr().out
        assert f"There is no exercise {name!r}." in out
        assert all(f"\n  {known}" in out for known in EXERCISES)
        with pytest.raises(LookupError, match="There is no exercise"):
            examine(attention, exercise=name)
    else:
        assert not find_or_none(name)


def find_or_none(name):
    with contextlib.suppress(LookupError):
        return find(str(name))


def test_a_slip_of_the_pen_in_a_name_is_guessed(capsys):
    check(attention, exercise="dot_product/attend")
    meant = "Did you mean 'dot_product/attention'?"
    assert meant in capsys.readouterr().out


# --- What it prints, and what it leaves alone ----------------------------


def test_it_prints_one_line_for_a_pass_and_returns_nothing(capsys):
    assert check(attention, exercise=ATTENTION) is None
    n = len(find(ATTENTION).probes)
    line = f"✓ {ATTENTION}: equal to the solution on {n} probes\n"
    assert capsys.readouterr().out == line


def test_a_right_prediction_is_right_and_a_wrong_one_is_not_given_away(capsys):
    check([0.102, 0.848, 0.05], exercise=DOUBLE_KEY)
    assert capsys.readouterr().out == f"✓ {DOUBLE_KEY}: right\n"
    check([0.2, 0.6, 0.2], exercise=DOUBLE_KEY)
    out = capsys.readouterr().out
    assert out.startswith(f"✗ {DOUBLE_KEY}: not right\n")
    assert "0.8" not in out and "0.1017" not in out


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([0.5, 0.5], "It returns the shape (2,), but (3,) is asked for."),
        ([0.1, [0.2]], "A number, a list of numbers or a word is asked for"),
        ({}, "A number, a list of numbers or a word is asked for"),
        ("more", "It gives a text, but a tensor is asked for."),
        ([math.nan] * 3, "It gives NaN in 3 of 3 numbers."),
    ],
)
def test_a_prediction_of_the_wrong_kind_gets_a_sentence(answer, sentence):
    assert sentence in " ".join(
        str(examine(answer, exercise=DOUBLE_KEY)).split()
    )


@pytest.mark.parametrize(
    ("answer", "place"), [([0.2, 0.8, 0.05], 1), ([0.1, 0.6, 0.2], 2)]
)
def test_a_wrong_list_is_told_which_of_its_numbers_is_furthest_off(
    answer, place
):
    said = str(examine(answer, exercise=DOUBLE_KEY))
    assert said.endswith(f" The furthest off is number {place} of 3.")
    exercise = prediction("x/y", "how many?", 3.0)
    assert str(diagnose(1.0, exercise)).endswith("wrong by up to 2.")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([-0.1, 0.9, 0.2], "below 0: no weight is"),
        ([0.0, 4.0, 1.0], "They sum to 5.00"),
        ([0.0, 0.9, 0.2], "They sum to 1.10"),
        ([0.0, 0.11, 0.89], "but not at these keys"),
        ([0.1, 0.8, 0.1], "Number 1 gets a share, but must not be seen"),
        ([0.0, 0.88, 0.12], "That is near"),
        ([0.0, 0.7, 0.3], "but of other scores: look at these"),
    ],
)
def test_a_wrong_row_of_weights_is_told_what_is_seen_of_it(answer, sentence):
    """Of each of them it was said that it was not right, and no more."""
    report = examine(answer, exercise="masks/padded_row")
    assert not report.passed and report.mistake is None
    assert sentence in " ".join(str(report).split())


def test_of_numbers_that_are_no_weights_no_sum_is_told():
    exercise = prediction("x/y", "how many?", torch.tensor([3.0, 1.0]))
    assert "sum" not in str(diagnose([1.0, 2.0], exercise))


@pytest.mark.parametrize(
    ("scores", "divisor", "name"),
    [
        ([3.0, 4.0, 1.0], 1.0, "neither turned nor scaled"),
        ([3.0, 4.0, 1.0], 2**0.5, "no rotation"),
        ([-0.339, 0.478, 1.0], 2.0, "scaled by 2"),
        ([3.033, 3.965, 1.0], 2**0.5, "in degrees"),
    ],
)
def test_a_moved_row_by_hand_is_named(scores, divisor, name):
    """By the page's numbers; of three of them nothing was told."""
    row = (torch.tensor(scores) / divisor).softmax(dim=-1)
    report = examine(row.tolist(), exercise="positions/moved")
    assert report.mistake and report.mistake.name == name


@pytest.mark.parametrize("factor", [0.7, 1.3, 5.0])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_prediction_is_likened_to_nothing_far_from_it(name, factor):
    exercise = find(name)
    mine = factor * exercise.run(exercise.solution, {}) + 0.61
    report = diagnose(mine, exercise)
    told = report.mistake or report.likeness
    if told is not None:
        its = exercise.run(told.answer, {})
        torch.testing.assert_close(mine, its, rtol=0.02, atol=0.05)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([-7.07, -7.07, 14.1], "These are ten times too large."),
        ([-0.5, -0.5, 1.0], "or, which comes to the same, those of (1, 1, 4)"),
        ([17, 17, 47], "These are the numbers that go in."),
    ],
)
def test_a_stretched_token_is_told_a_cause_that_is_true_of_it(answer, words):
    said = str(examine(answer, exercise="layers/stretched"))
    assert words in " ".join(said.split())


@pytest.mark.parametrize(
    ("divisor", "name"),
    [
        (
            lambda x, eps: (
                (x.var(-1, correction=0, keepdim=True) + eps) ** 0.5
            ),
            "neither gain nor shift",
        ),
        (
            lambda x, eps: x.std(-1, correction=0, keepdim=True) + eps,
            "bare with eps outside the root",
        ),
        (
            lambda x, eps: x.std(-1, keepdim=True) + eps,
            "bare with sample deviation",
        ),
    ],
)
def test_a_norm_without_gain_and_shift_is_told_of_both(divisor, name):
    def norm(x, gain, shift, eps):
        return (x - x.mean(-1, keepdim=True)) / divisor(x, eps)

    report = diagnose(norm, find("layers/layer_norm"))
    assert report.mistake.name == name
    assert "Neither the gain nor the shift is used" in str(report.mistake)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (lambda p: p.diag() - p[:, None] * p[None, :], "one row alone"),
        (
            lambda p: torch.diag(p) - torch.outer(p, p),
            "one row by its numbers",
        ),
    ],
)
def test_a_jacobian_of_one_row_alone_is_called_so(answer, name):
    found = diagnose(answer, find("scaling/jacobian"))
    assert found.mistake.name == name


def test_a_prediction_may_be_a_word():
    @mistaken_value
    def the_other():
        """It is not.

        Cause: A sign.
        Cure: Think again.
        """
        return "flatter"

    exercise = prediction(
        "x/y", "sharper or flatter?", "sharper", (the_other,)
    )
    assert diagnose(" Sharper", exercise).passed
    assert diagnose("flatter", exercise).mistake.name == "the other"
    assert str(diagnose("doubled", exercise)) == (
        "✗ x/y: not right\n  It is another one."
    )
    assert "but a text is asked for" in str(diagnose(3, exercise))


def test_an_answer_that_is_a_class_is_run_by_the_exercises_use():
    exercise = Exercise(
        "x/linear",
        asks="a linear layer",
        solution=torch.nn.Linear,
        probes=(Probe("it is x Wᵀ + b", {"x": "n d"}, gradient=True),),
        use=lambda layer, inputs: (
            layer(inputs["x"].shape[-1], 3)(**inputs)
            if layer is not torch.nn.Linear
            else layer(inputs["x"].shape[-1], 3)(inputs["x"])
        ),
    )

    class Mine(torch.nn.Linear):
        def forward(self, x):
            return x @ self.weight.mT + self.bias

    class NoBias(Mine):
        def forward(self, x):
            return x @ self.weight.mT

    assert diagnose(Mine, exercise).passed
    assert not diagnose(NoBias, exercise).passed


def test_it_says_the_same_every_time():
    def at_random(q, k, v, mask=None):
        return torch.randn(*q.shape[:-1], v.shape[-1], dtype=q.dtype)

    for answer in (at_random, leaks_a_little, no_scale_and_nan):
        texts = {str(examine(answer, exercise=ATTENTION)) for _ in range(2)}
        torch.manual_seed(1)
        texts.add(repr(examine(answer, exercise=ATTENTION)))
        assert len(texts) == 1
        assert "0x" not in texts.pop()


def test_it_leaves_the_readers_world_as_it_was():
    def noisy(q, k, v, mask=None):
        print("here I am")
        torch.rand(3)
        F.softmax(q)  # warns: which axis?
        return attention(q, k, v, mask=mask)

    state = torch.get_rng_state()
    heard = io.StringIO()
    with contextlib.redirect_stdout(heard), torch.no_grad():
        report = examine(noisy, exercise=ATTENTION)
    assert report.passed  # gradients, too, though they are off out here
    assert heard.getvalue() == ""
    assert torch.equal(torch.get_rng_state(), state)


def test_it_works_under_another_default_type():
    torch.set_default_dtype(torch.float64)
    try:
        assert examine(attention, exercise=ATTENTION).passed
    finally:
        torch.set_default_dtype(torch.float32)


def test_probes_ask_what_they_say():
    """Sizes, types and strides that a wrong answer would stumble over."""
    probes = {probe.claim: probe for probe in find(ATTENTION).probes}
    made = [probe.make() for probe in probes.values()]
    q, k, v = (made[0][name] for name in "qkv")
    assert len({q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1]}) == 4
    assert {one["q"].ndim for one in made} == {2, 3, 4}
    assert {one["q"].dtype for one in made} == {torch.float32, torch.float64}
    assert any(not one["q"].is_contiguous() for one in made)
    assert any("mask" in one for one in made)
    assert any(
        "mask" in one and not one["mask"].any(dim=-1).all() for one in made
    )
    assert sum(probe.gradient for probe in probes.values()) >= 3
    assert attention(q, k, torch.eye(7)).max() < 0.9  # not saturated


def test_a_long_answer_is_not_printed_whole():
    """A short input can make a long output: 5,001 positions made 5.8 MB."""

    def table(n, d_model):
        angle = torch.arange(float(n))[:, None] * 10_000.0 ** (
            -torch.arange(0, d_model, 2) / d_model
        )
        both = torch.stack((angle.sin(), angle.cos()), dim=-1)
        return both.flatten(-2)[:, :d_model]

    report = examine(table, kind="sinusoidal")
    assert not report.passed
    assert len(str(report)) < 3000


@pytest.mark.parametrize(("tile", "wrong"), [(1, [0, 2]), (2, []), (3, [])])
def test_one_pass_is_wrong_on_the_running_numbers_key_by_key(tile, wrong):
    """So the page says; that is where a reader first tries it."""
    exercise = find("flash/one_pass")
    [shown] = (m for m in exercise.mistakes if m.name == "never shrunk")
    q = torch.tensor([[1.0, 0.0], [0.0, 2.0], [2.0, 1.0]])
    k = torch.tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 1.0]])
    v = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    rows = enumerate(q @ k.T / 2**0.5)
    made = [(i, shown.answer(s, v, tile), s.softmax(0) @ v) for i, s in rows]
    assert [i for i, a, b in made if not torch.allclose(a, b)] == wrong
