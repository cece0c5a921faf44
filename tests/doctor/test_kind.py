"""Kinds: facts that were told, read off or tried."""

import pytest

from selfattn.doctor.kind import Fact, Kind


def a_kind(**facts):
    return Kind("x", "y", lambda thing, facts: None, facts)


def test_what_is_said_goes_before_what_is_seen_and_both_before_a_try():
    ways = Fact("which", {1: "", 2: ""})
    kind = a_kind(a=ways, b=ways, names=Fact("its names"))
    read = list(kind.readings({"a": 1}, {"a": 2, "b": 2}))
    assert read == [{"a": 1, "b": 2}]
    named = kind.readings({"names": {"x": "y"}}, {"names": {"x": "y", "z": 1}})
    assert all(facts["names"] == {"x": "y", "z": 1} for facts in named)
    assert len(list(kind.readings({}, {}))) == 4
    assert len(list(kind.readings({}, {"try": {"a": (1,)}}))) == 2


def test_facts_are_checked_and_those_tried_late_are_known():
    kind = a_kind(a=Fact("which", {1: ""}), b=Fact("x", {2: ""}, of="mask"))
    kind.check({"a": 1, "takes": ["mask"]})
    with pytest.raises(ValueError, match="a must be one of 1, but it is 3"):
        kind.check({"a": 3})
    with pytest.raises(ValueError, match="'x' has no 'c'; it has a, b, takes"):
        kind.check({"c": 1})
    assert kind.late() == {"mask"}
    assert kind.early({"a": 1, "b": 2}) == ("1",)
