"""Lists: every kind, and what may be said of one, and go wrong in it."""

import json

import pytest

from selfattn.doctor.__main__ import main
from selfattn.doctor.command.listing import listed
from selfattn.doctor.kinds import kinds, whole_kinds


def test_the_kinds_are_listed_in_their_order():
    names = [line.partition(": ")[0] for line in listed(None).splitlines()]
    assert names == sorted({**kinds(), **whole_kinds()})


def test_a_kind_is_listed_with_its_facts_and_mistakes():
    lines = listed("attention").splitlines()
    assert lines[0].startswith("attention: softmax(q kᵀ / √d) v")
    facts, mistakes = lines.index("Facts:"), lines.index("Mistakes:")
    assert "  --mask-axes: which axes a mask has" in lines[facts:mistakes]
    assert "      keep: True allows" in lines[facts:mistakes]
    assert any(line.startswith("  no scale: ") for line in lines[mistakes:])
    common = ("  --takes: names of what it can do", "  --dtypes: the number ")
    for words in common:  # which every kind has, and no page said
        assert any(x.startswith(words) for x in lines[facts:mistakes])


def test_what_may_be_said_besides_the_words_is_listed_behind_them():
    line = "      …: or a function of it, and of what it is called with"
    assert line in listed("self-attention").splitlines()
    assert line not in listed("attention").splitlines()


def test_a_kind_that_is_none_is_refused():
    with pytest.raises(LookupError, match="There is no kind 'atention'"):
        listed("atention")


@pytest.mark.parametrize("kind", [[], ["--kind", "attention"]])
def test_a_list_for_a_program_is_json(kind, capsys):
    """`--list --json` printed the words for a reader."""
    assert main(["--list", "--json", *kind]) == 0
    told = json.loads(capsys.readouterr().out)
    if kind:
        assert told["facts"]["mask"]["values"]["keep"] == "True allows"
        assert told["mistakes"]["no scale"]
    else:
        assert list(told) == sorted({**kinds(), **whole_kinds()})
