"""Facts: what may be said of a patient, and what nobody can mean."""

import math
from fractions import Fraction

import pytest
import torch
from torch.nn import RMSNorm

from selfattn import attention
from selfattn.doctor import examine
from selfattn.doctor.__main__ import main
from selfattn.doctor.kind import TYPES, with_types
from selfattn.doctor.kinds import find_kind, kinds
from selfattn.layers import LayerNorm
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import rope, sinusoidal

FACTS = [
    (kind.name, name)
    for kind in kinds().values()
    for name, fact in kind.facts.items()
    if not fact.options
]


class Nameless:
    """What no fact may be."""


@pytest.mark.parametrize(("kind", "name"), FACTS)
def test_no_fact_may_be_anything_at_all(kind, name):
    """A fact that is asked nothing would blame the patient for its value."""
    fact = find_kind(kind).facts[name]
    assert fact.saying is not None
    words = f"{name} must be {fact.saying.words}, but it is "
    hostile = [Nameless(), 3j, [], {1: 2}, "", "1 2", "a..b", b"q", [[]]]
    hostile += [math.nan, -math.inf, 10**400, torch.zeros(2, 3, 1)]
    refused = [x for x in hostile if not fact.saying.fits(x)]
    assert len(refused) >= len(hostile) - 3
    for value in refused:
        with pytest.raises(ValueError) as error:
            find_kind(kind).check({name: value})
        assert str(error.value).startswith(words)
    find_kind(kind).check({name: None})


SAID = {
    "scale": ([1.0, 0, -2, Fraction(1, 2)], [True, math.inf, "1", 3j]),
    "cap": ([50.0, 1], [0, -1.0, math.nan]),
    "window": ([1, 7], [0, -3, 3j, 2.0, True]),
    "dropout": ([0.0, 0.1, 1], [1.5, -0.1]),
    "square": ([True, False], [1, "yes"]),
    "bias": ([torch.zeros_like], ["lambda: 0", 1]),
    "names": (
        [{"q": "query", "mask": None, "k": "keys"}],
        ["q", {1: 2}, {"queries": "q"}, {"q": "a b"}, {"q": "q", "foo": "b"}],
    ),
    "shared": (["kv", ["k", "v"], "q"], ["kk", "x", [["k"]], "qkvq"]),
    "call": ([{}, {"scale": 2}], [[], {1: 2}, "x"]),
}


@pytest.mark.parametrize("name", SAID)
def test_the_bounds_of_a_fact_are_where_they_are_said_to_be(name):
    kind = find_kind("attention")
    may, may_not = SAID[name]
    for value in may:
        kind.check({name: value})
    for value in may_not:
        with pytest.raises(ValueError, match=f"^{name} must be"):
            kind.check({name: value})


OF_OTHERS = {
    ("rope", "base"): ([1, 1e4, 10.5], [0, -3, 0.5, 1e-30]),
    ("rope", "part"): ([1, 0.25], [0, 3, -1, 1.5]),
    ("rope", "width"): ([6, 65536], [0, -4, 2**31]),
    ("sinusoidal", "base"): ([1, 1e4], [0, -1, 0.99]),
    ("layer-norm", "eps"): ([1e-12, 1], [0, -1, math.inf]),
    ("rms-norm", "eps"): ([1e-6], [0, -1e-6]),
    ("self-attention", "length"): ([1, 4096], [0, -9, 2**31, 9.0]),
    ("encoder-block", "length"): ([49], [0, 4097]),
    ("cached-decoder", "d_model"): ([8], [0, 2**31]),
}


@pytest.mark.parametrize(("kind", "name"), OF_OTHERS)
def test_what_no_such_thing_has_is_refused_and_not_blamed_on_it(kind, name):
    """A base of 0 was not heard, and one of -3 the doctor's own trouble; an
    eps below 0 accused a sound norm.
    """
    may, may_not = OF_OTHERS[kind, name]
    for value in may:
        find_kind(kind).check({name: value})
    for value in may_not:
        with pytest.raises(ValueError, match=f"^{name} must be"):
            find_kind(kind).check({name: value})


NUMBERS = [1e-30, 0.5, 1, 3, 2**31, 1e30]
SOUND = {
    "rope": rope,
    "sinusoidal": sinusoidal,
    "layer-norm": LayerNorm(8),
    "rms-norm": RMSNorm(8),
    "self-attention": MultiHeadAttention(8, 2),
}


@pytest.mark.parametrize("kind", SOUND)
def test_no_number_that_a_fact_may_have_is_the_doctor_s_own_trouble(kind):
    """Whatever is said of a sound thing: the reference can compute it."""
    tried = [
        (name, value)
        for name, fact in find_kind(kind).facts.items()
        if not isinstance(fact.saying, type(None))
        for value in NUMBERS
        if fact.allows(value) and fact.saying.fits(value)
    ]
    assert tried
    for name, value in tried:
        report = examine(SOUND[kind], kind=kind, **{name: value})
        assert "doctor's own" not in str(report), name


def test_another_eps_than_that_of_pytorch_s_norm_is_told():
    """Its eps is None, which was set to whatever was said of it."""
    norm = torch.nn.RMSNorm(8)
    said = {"kind": "rms-norm", "dtypes": ["float32"]}
    assert examine(norm, eps=1e-3, **said).exit_code == 1
    usual = torch.finfo(torch.float32).eps
    assert examine(norm, eps=usual, **said).passed


@pytest.mark.parametrize(
    "said", ["float16", ["float16"], torch.float16, [torch.float16]]
)
def test_a_number_type_may_be_said_in_any_form(said):
    """A word was walked by its letters, and one of torch's was lost."""
    assert with_types({"dtypes": said}) == {"dtypes": ["float16"]}
    assert with_types({"dtypes": None}) == {"dtypes": None}
    kind = find_kind("attention")
    told = with_types({"dtypes": said})
    assert set(kind.excluded(told)) == {*TYPES} - {"float16"}
    assert kind.asked_of(told) == ("float16",)


@pytest.mark.parametrize(
    "said", ["float1", "", [], 3, ["float8"], ["float32", 3], {}, torch.int8]
)
def test_what_is_no_number_type_is_refused(said):
    """Any of them was healthy: what is in none of the names, nobody asked."""
    with pytest.raises(ValueError, match="dtypes must be one or several of"):
        examine(attention, kind="attention", dtypes=said)


@pytest.mark.parametrize(
    "words",
    [
        ["--cap", "0"],
        ["--scale", "1e999"],
        ["--scale", "nan"],
        ["--window", "3j"],
        ["--bias", "lambda: 0"],
        ["--names", "q"],
        ["--names", "{1:2}"],
        ["--dtypes", "['float8']"],
        ["--dtypes", "float1"],
        ["--dtypes", "3"],
        ["--window=-3"],
        ["--window", "0"],
    ],
)
def test_the_command_blames_whoever_said_it(words, capsys):
    """The patient was: its trouble was that cap is 0."""
    code = main(["selfattn:attention", "--kind", "attention", *words])
    output, errors = capsys.readouterr()
    assert code == 2 and output == ""
    assert errors.startswith(f"{words[0].strip('-').split('=')[0]} must be")
