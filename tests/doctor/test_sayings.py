"""Facts: what may be said of a patient, and what nobody can mean."""

import math
from fractions import Fraction

import pytest
import torch

from selfattn import attention
from selfattn.doctor import examine
from selfattn.doctor.__main__ import main
from selfattn.doctor.kind import TYPES, with_types
from selfattn.doctor.kinds import find_kind, kinds

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
