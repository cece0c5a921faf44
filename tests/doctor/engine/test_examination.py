"""The door: what is asked is checked, and a thing is not asked its name."""

import functools
import math
import time
from fractions import Fraction

import pytest
import torch
from torch import nn

from selfattn import attention
from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.doctor import check, examine
from selfattn.doctor.engine.examination import is_positive
from selfattn.doctor.engine.readings import title

ATTENTION = {"kind": "attention", "layout": "any"}


@pytest.mark.parametrize("limit", [30.0, None])
@pytest.mark.parametrize("takes", [["masks"], ["mask", "cusal"], "masks"])
def test_a_name_that_is_misspelt_is_refused(takes, limit):
    """`takes=["masks"]` was healthy, on the one probe that needs nothing."""
    with pytest.raises(ValueError, match="takes must list what 'attention'"):
        examine(attention, takes=takes, time_limit=limit, **ATTENTION)


@pytest.mark.parametrize(
    "takes", [3, {"mask": True}, torch.ones(2), b"mask", [["mask"]]]
)
def test_names_are_listed(takes):
    with pytest.raises(ValueError, match="takes must list names, but it is"):
        examine(attention, takes=takes, **ATTENTION)


def test_one_name_needs_no_list():
    reports = [
        examine(attention, takes=takes, time_limit=None, **ATTENTION)
        for takes in ("mask", ["mask"], ("mask",), {"mask"})
    ]
    assert {report.probes for report in reports} == {reports[0].probes}
    assert reports[0].passed and "a causal flag" in str(reports[0])


def test_a_limit_is_a_number_above_zero():
    for limit in (1, 0.5, math.inf, Fraction(1, 2)):
        assert is_positive(limit)
    for limit in (0, -1, math.nan, -math.inf, True, "1", None, 1j):
        assert not is_positive(limit)


class NoKey:
    def __hash__(self):
        raise RuntimeError("of no use")


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"kind": "attention", "exercise": "dot_product/attention"},
        {"kind": "attention", "mask": "keeps"},
        {"kind": "attention", "mask": ["keep"]},
        {"kind": "attention", "mask": {"keep": 1}},
        {"kind": "attention", "mask": NoKey()},
        {"kind": "attention", "masks": "keep"},
        {"exercise": "dot_product/attention", "causal": True},
    ],
)
def test_what_cannot_be_asked_is_refused(facts):
    with pytest.raises(ValueError, match=r"must be|is examined as one"):
        examine(attention, **facts)


class Shy:
    """It has no attribute that one could ask for."""

    def __call__(self, q, k, v):
        return attention(q, k, v)

    def __getattr__(self, name):
        raise RuntimeError(f"do not ask for {name}")


class Slow(Shy):
    def __getattr__(self, name):
        time.sleep(600)


class Loose(Shy):
    __name__ = property(lambda self: 1 / 0)


@pytest.mark.parametrize("shy", [Shy, Slow, Loose])
def test_a_thing_that_may_not_be_asked_is_examined_all_the_same(shy):
    """What it raises came out of `examine`, and what hangs hung it."""
    start = time.monotonic()
    report = examine(shy(), time_limit=3.0, **ATTENTION)
    assert report.patient == shy.__name__
    assert report.passed or report.exit_code == 2, report
    assert time.monotonic() - start < 60


def test_a_thing_has_a_title():
    class Named:
        def __init__(self):
            self.__name__ = "mine"

    assert title(attention) == title(functools.partial(attention))
    assert title(attention) == "attention" and title(Named) == "Named"
    assert title(Named()) == "mine" and title([].append) == "append"
    assert title(torch.nn.Linear(1, 1)) == "Linear"
    assert title(functools.partial(Shy())) == "Shy" and title(3) == "int"


class Lazy:
    """What raises at whatever it is asked, as a proxy may."""

    def __init__(self, error):
        vars(self)["error"] = error

    @property
    def __class__(self):
        raise vars(self)["error"]


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError("x")])
def test_an_answer_that_raises_as_it_is_looked_at_is_told(error, capsys):
    """A KeyError was taken for an exercise that there is not: "Did you mean
    'dot_product/weights'?", it said of 'dot_product/weights'.
    """
    check(Lazy(error), exercise="dot_product/weights")
    told = " ".join(capsys.readouterr().out.split())
    assert "no diagnosis" in told and "as it is looked at" in told
    assert "There is no exercise" not in told


def test_a_patient_whose_name_is_a_number_has_none():
    """It was asked whether it is an identifier, and the doctor fell."""

    class Numbered:
        def __init__(self):
            self.__name__ = 3

        def __call__(self, q, k, v):
            return attention(q, k, v)

    report = examine(Numbered(), **ATTENTION)
    assert report.passed and report.patient == "Numbered"


class Unspoken:
    """It says nothing of itself."""

    def __repr__(self):
        raise RuntimeError("unspoken")


@pytest.mark.parametrize(
    "said",
    [
        {"axis": Unspoken()},
        {"mask": Unspoken()},
        {"dtypes": Unspoken()},
        {"takes": Unspoken()},
        {"time_limit": Unspoken()},
        {"memory_limit": Unspoken()},
        {"exercise": Unspoken()},
    ],
    ids=lambda said: next(iter(said)),
)
def test_what_says_nothing_of_itself_is_refused_by_its_type(said):
    """What it raised came out in the refusal's place."""
    with pytest.raises(ValueError, match="of the type Unspoken"):
        examine(torch.softmax, kind="softmax", **said)
    with pytest.raises(LookupError, match="of the type Unspoken"):
        examine(torch.softmax, kind=Unspoken())


def test_a_whole_number_that_no_tensor_can_hold_is_refused():
    """The doctor's own reference raised of it."""
    for kind, fact in (("rms-norm", "eps"), ("self-attention", "scale")):
        with pytest.raises(ValueError, match="000, which no tensor can hold"):
            examine(nn.RMSNorm(8), kind=kind, **{fact: 10**30})


def test_a_table_that_is_none_is_looked_for():
    class Placed(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.rand(9, 4))

        def forward(self, x):
            return x + self.table[: x.shape[1]]

    report = examine(Placed(), kind="positions", table=None)
    assert report.passed, report


@pytest.mark.parametrize("kind", ["encoder-block", "decoder-block"])
def test_a_part_that_is_not_there_is_asked_after(kind):
    """The trouble was the doctor's own, it was said."""
    sort = EncoderBlock if kind == "encoder-block" else DecoderBlock
    report = examine(sort(12, 3, 24, pre=True), kind=kind, norms=["x"])
    assert report.exit_code == 2
    assert "has no part 'x'" in report.question, report
