"""The command's arguments: options, facts and one thing, in any order."""

import itertools

import pytest

from selfattn.doctor.command.arguments import read_arguments, read_facts

THING = "my.layers:Attention"


def test_the_thing_and_its_facts_may_stand_in_any_order():
    """`--n-heads 3 my.layers:Attention` took 3 for the thing."""
    groups = [
        [THING],
        ["--kind", "self-attention"],
        ["--n-heads", "3"],
        ["--causal"],
        ["--json"],
    ]
    for order in itertools.permutations(groups):
        name, facts, options = read_arguments(
            list(itertools.chain.from_iterable(order))
        )
        assert name == THING, order
        assert facts == {"n_heads": 3, "causal": True}, order
        assert (options.kind, options.json) == ("self-attention", True)


@pytest.mark.parametrize(
    "name",
    [
        "mine.py:f",
        "a folder/my file.py:Outer.Inner",
        r"C:\mine.py:f",
        "übung.schicht:Größe",
    ],
)
def test_a_thing_is_known_by_its_colon_and_values_are_not_taken_for_it(name):
    words = ["--call", "{'a': 1}", "--eps", "-1e-5", name, "--kind=x"]
    found, facts, _ = read_arguments(words)
    assert found == name
    assert facts == {"call": {"a": 1}, "eps": -1e-5}


@pytest.mark.parametrize("word", ["{[1]: 2}", "(" * 5000, "\0", "1 +"])
def test_what_is_no_value_is_a_word(word):
    """A list for a key came out as a TypeError."""
    assert read_facts(["--call", word]) == {"call": word}


@pytest.mark.parametrize("name", [".a:b", "a..b:c", ".py:c", "a:", "a:1", ""])
def test_what_names_no_thing_is_refused(name):
    with pytest.raises(ValueError, match="a thing is named package"):
        read_arguments([name, "--kind", "attention"])


@pytest.mark.parametrize(
    ("words", "both"),
    [
        (["--kind", "attention", "--kind=softmax"], "attention and softmax"),
        (["--time-limit", "3", "--time-limit", "0"], "3.0 and inf"),
        (["--memory-limit", "20", "--memory-limit", "20"], "20.0 and 20.0"),
    ],
)
def test_an_option_is_said_once(words, both):
    """The last one counted."""
    with pytest.raises(ValueError, match=f"{words[0]} is said to be {both}"):
        read_arguments([THING, *words])
    _, _, options = read_arguments([THING, *words[:2]])
    assert options.json is options.list is False


def test_two_dashes_alone_say_nothing():
    """`-- file.py`, as other commands want it, told a fact without a name."""
    words = ["--causal", "--", "my/file.py"]
    name, facts, _ = read_arguments(words)
    assert (name, facts) == ("my/file.py", {"causal": True})


def test_two_things_at_once_are_refused():
    with pytest.raises(ValueError, match="'a:b' and 'c:d'"):
        read_arguments(["a:b", "--kind", "attention", "c:d"])


def test_no_option_is_guessed_from_its_beginning():
    """A fact may begin like an option of ours."""
    _, facts, options = read_arguments(
        ["--ki", "x", THING, "--kind", "y", "--time", "3"]
    )
    assert options.kind == "y" and facts == {"ki": "x", "time": 3}


def test_facts_are_read_as_options():
    facts = read_facts(["--causal", "--no-flag", "--call", "{'a': 1}"])
    assert facts == {"causal": True, "flag": False, "call": {"a": 1}}
    with pytest.raises(ValueError, match="begins with two dashes, but this"):
        read_facts(["--n-heads", "3", "loose"])


@pytest.mark.parametrize(
    "twice",
    [["--causal", "--no-causal"], ["--scale", "2", "--scale=3"], ["--a"] * 2],
)
def test_a_fact_that_is_said_twice_is_refused(twice):
    """`--causal --no-causal` took the last word and left the first unsaid."""
    with pytest.raises(ValueError, match="a fact is said once, but"):
        read_facts(twice)
