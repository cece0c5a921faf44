"""Settings keep their bounds: in Python, in a link, and in both at once."""

import math
import re

import pytest
import torch
import traitlets

from selfattn.labs.dot_product import DotProductLab
from selfattn.labs.machinery.settings import SettingError
from selfattn.labs.masks import MasksLab
from selfattn.labs.models import ModelsLab
from selfattn.labs.multihead import MultiheadLab
from selfattn.labs.scaling import ScalingLab
from selfattn.labs.window import WindowLab

START = DotProductLab().values()


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("n=5", {"n": 5}, ""),
        ("query=4&n=5", {"n": 5, "query": 4}, ""),
        ("n=99", {"n": 10}, "n must lie between 1 and 10"),
        ("n=4.5", {"n": 5}, "whole"),
        ("n=NaN", {}, "n must be a number"),
        ("n=Infinity", {}, "n must be a number"),
        ("n=", {}, "n must be a number"),
        ("n=2", {"n": 2, "query": 1}, ""),
        ("query=7", {}, "query must lie between 0 and 2"),
        ("d_k=3", {}, "d_k must be one of 2, 4, 8"),
        ("mask=prefix", {}, "mask must be one of none"),
        ("colour=red", {}, "no setting “colour”"),
        ("__proto__=1", {}, "no setting “__proto__”"),
        ("q=12:1:1", {}, "q has no point “12:1:1”"),
        ("q=0:1", {}, "q has no point “0:1”"),
        ("q=0:NaN:1", {}, "q[0] must be a number"),
        (
            "k=1:9:0",
            {"k": [START["k"][0], [3, 0], *START["k"][2:]]},
            "k[1] must lie between -3 and 3",
        ),
    ],
)
def test_a_bad_link_is_mended_and_said(
    assert_link_is_mended, link, changed, complaint
):
    assert_link_is_mended(DotProductLab(), link, changed, complaint)


@pytest.mark.parametrize(
    "link", ["", "#why-divide", "#lab", "#lab=other&n=5", "#%E0%A4%A"]
)
def test_other_links_are_left_alone(in_node, link):
    rules = DotProductLab().rules
    calls = [["readLink", link, "dot_product", rules]]
    assert in_node("dot_product", calls) == [None]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"n": 11}, "n must lie between 1 and 10, but it is 11"),
        ({"query": 3}, "query must lie between 0 and 2, but it is 3"),
        ({"d_k": 3}, "d_k must be one of 2, 4, 8, 16, 32, 64, but it is 3"),
        ({"mask": "all"}, "mask must be one of 'none', 'causal'"),
        ({"k": [[0, 0]]}, "k must be 10 points"),
        ({"k": [[0, 9]] * 10}, "coordinates between -3 and 3"),
        ({"q": [[0, float("nan")]] * 10}, "coordinates between -3 and 3"),
        ({"colour": 1}, "but 'colour' is none of them"),
    ],
)
def test_a_bad_setting_is_refused_in_python(start, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        DotProductLab(**start)


def test_a_refused_setting_leaves_the_old_one():
    some = DotProductLab()
    with pytest.raises(SettingError, match="n must lie"):
        some.n = 0
    assert some.values() == START


def test_a_shorter_sentence_takes_its_positions_along():
    some = DotProductLab(n=8, query=7, length=6, window=5)
    some.n = 4
    assert (some.query, some.length, some.window) == (3, 4, 4)


def test_traits_go_both_ways():
    some, heard = DotProductLab(), []
    some.observe(lambda change: heard.append(change.new), "n")
    # What the page sends when its slider moves.
    some.set_state({"n": 2, "query": 1})
    assert (some.n, some.query, heard) == (2, 1, [2])
    with pytest.raises(traitlets.TraitError, match="n must lie"):
        some.set_state({"n": 200})


ODD = {
    "True for a number of keys": (ScalingLab, {"query": True}),
    "True for a window": (WindowLab, {"window": True}),
    "a tensor for one of a few": (MultiheadLab, {"n_heads": torch.zeros(2)}),
    "a number beyond all": (ModelsLab, {"top_p": 10**400}),
    "True for a share": (ModelsLab, {"top_p": True}),
    "NaN for a share": (ModelsLab, {"top_p": math.nan}),
    "no points": (DotProductLab, {"q": 3}),
    "words for points": (DotProductLab, {"q": [["a", "b"]] * 3}),
    "a table of points": (DotProductLab, {"q": [[torch.zeros(2)] * 2] * 3}),
    "no cells": (MasksLab, {"flipped": 3}),
    "cells of three": (MasksLab, {"flipped": [[1, 2, 3]]}),
    "words for cells": (MasksLab, {"flipped": "ab"}),
}


@pytest.mark.parametrize("what", ODD)
def test_whatever_a_setting_is_set_to_is_refused_by_its_name(what):
    """True was taken for 1, and the picture fell; a tensor, or what is no
    list of points, was refused by Python, which named no setting.
    """
    make, start = ODD[what]
    [name] = start
    lab = make()
    before = lab.values()
    with pytest.raises(SettingError, match=f"^{name} must be"):
        lab.set_trait(name, start[name])
    with pytest.raises(SettingError, match=f"^{name} must be"):
        make(**start)
    assert lab.values() == before and lab.describe()


def test_of_two_changes_one_of_which_is_refused_none_is_made():
    """What is set together is looked at together, at the end; an error that
    was none of the settings' left a position far outside its table.
    """
    lab = MasksLab()
    before = lab.values()
    with pytest.raises(SettingError), lab.hold_trait_notifications():
        lab.i, lab.flipped = 10**30, "ab"
    assert lab.values() == before
