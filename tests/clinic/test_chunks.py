"""Decoders are ill if they are not one with themselves, and else healthy."""

import pytest
import torch

from tools.measure.clinic.chunks import another, judged
from tools.measure.clinic.patients import patient, styles

STYLES = {s.name: s for s in styles() if s.kind == "cached-decoder"}


def verdict(name, was, becomes):
    """What is said of a decoder in which something was replaced."""
    text = STYLES[name].text
    assert was in text
    mutant = patient(text.replace(was, becomes), "mutant")
    return judged(patient(text), mutant)


@pytest.mark.parametrize("name", STYLES)
def test_each_is_one_with_itself(name):
    text = STYLES[name].text
    assert judged(patient(text), patient(text, "again")).is_ == "equivalent"


@pytest.mark.parametrize(
    ("was", "becomes", "why"),
    [
        ("(past_k, k)", "(k, past_k)", "in chunks it says something else"),
        (".tril(total - n)", ".tril(total - n + 1)", "in chunks"),
        ("k.transpose(2, 3)", "k[:1].transpose(2, 3)", "another text is seen"),
        ("return out, (k, v)", "return out, cache", "in chunks"),
        ("@ v\n", "@ v.float().double()\n", ""),
        ("-inf", "nan", "NaN or infinity"),
    ],
)
def test_one_that_is_not_is_ill(was, becomes, why):
    found = verdict("joined_pairs", was, becomes)
    healthy = not why
    assert found.is_ == ("equivalent" if healthy else "ill")
    assert found.why.startswith(why)


@pytest.mark.parametrize("behind", [-1, -2])
def test_one_that_reads_numbers_of_words_is_ill_if_it_looks_ahead(behind):
    was, becomes = "(added < 0,", f"(added < {behind},"
    assert verdict("items_with_mixins", was, becomes).is_ == "ill"


def test_another_word_is_one_that_was_promised():
    """It was a number that no table has, and sound ones raised."""
    words = torch.arange(9)
    others = another(words)
    assert bool((others != words).all())
    assert set(others.tolist()) <= set(words.tolist())


def test_another_scale_makes_another_decoder():
    found = verdict("joined_pairs", "/ q.size(-1) ** 0.5", "")
    assert found.is_ == "equivalent"
