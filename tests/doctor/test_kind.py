"""Kinds: facts that were told, read off or tried."""

import pytest

from selfattn.doctor.kind import Fact, Kind, Reading


def a_kind(**facts):
    return Kind("x", "y", lambda thing, facts: None, facts)


def test_what_is_said_goes_before_what_is_seen_and_both_before_a_try():
    ways = Fact("which", {1: "", 2: ""})
    kind = a_kind(a=ways, b=ways, names=Fact("its names"))
    [read] = kind.readings({"a": 1}, Reading({"a": 2, "b": 2}))
    assert read.facts == {"a": 1, "b": 2}
    seen = Reading({"names": {"x": "y", "z": 1}})
    named = kind.readings({"names": {"x": "y"}}, seen)
    assert all(one.facts["names"] == {"x": "y", "z": 1} for one in named)
    assert len(list(kind.readings({}, Reading()))) == 4
    one_to_try = Reading(candidates={"a": (1,)})
    assert len(list(kind.readings({}, one_to_try))) == 2


def test_what_is_not_asked_is_what_it_lacks_or_was_not_said_to_take():
    seen = Reading(lacks={"mask": "why"}, has=("flag",))
    optional = {"mask": "a mask", "flag": "a flag", "double": "float64"}
    [read] = a_kind().readings({}, seen)
    assert read.without(optional) == {"mask": "why"}
    assert read.required == ("flag",)
    [told] = a_kind().readings({"takes": ["mask"]}, seen)
    why = "it was not said to take it"
    assert told.without(optional) == {"flag": why, "double": why}
    assert told.required == ("mask", "flag")


def test_facts_are_checked_and_those_tried_late_are_known():
    kind = a_kind(a=Fact("which", {1: ""}), b=Fact("x", {2: ""}, need="mask"))
    kind.check({"a": 1, "takes": ["mask"]})
    with pytest.raises(ValueError, match="a must be one of 1, but it is 3"):
        kind.check({"a": 3})
    with pytest.raises(ValueError, match="'x' has no 'c'; it has a, b, takes"):
        kind.check({"c": 1})
    assert kind.needs_tried_last() == {"mask"}
    assert kind.tried_first({"a": 1, "b": 2}) == ("1",)
