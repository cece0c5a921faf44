"""Probes: numbers of their own, the same every time."""

import dataclasses

from selfattn.doctor.exercises import find, names
from selfattn.doctor.probes import (
    SIZES,
    Probe,
    in_other_order,
    no_keys_for_the_first,
    numbers,
    real_keys,
    some_keys,
)


def test_numbers_are_quarters_and_never_zero():
    x = numbers(50, 50)
    assert (x * 4 == (x * 4).round()).all() and (x != 0).all()
    assert x.min() == -1.5 and x.max() == 1.5
    assert not numbers(9, seed=1).equal(numbers(9, seed=2))


def test_numbers_that_somebody_writes_over_come_again():
    """They are drawn once and copied: who changes his changes no other's."""
    kept = numbers(3, 5)
    numbers(3, 5).zero_()
    assert numbers(3, 5).equal(kept) and kept.all()


def test_every_input_has_numbers_of_its_own_and_they_come_again():
    probe = Probe("x", {"a": "n d", "b": "n d"})
    made, again = probe.make(), probe.make()
    assert not made["a"].equal(made["b"])
    assert made["a"].equal(again["a"]) and made["a"] is not again["a"]
    assert probe.axes() == {"n": SIZES["n"], "d": SIZES["d"]}
    assert probe.make(d=2)["a"].shape == (SIZES["n"], 2)
    assert dataclasses.replace(probe, sizes={"d": 3}).axes()["d"] == 3


def test_no_input_can_mix_up_two_axes():
    """Those of one size, n and n_q, are never in the same input."""
    twins = {a for a in SIZES for b in SIZES if a < b and SIZES[a] == SIZES[b]}
    assert twins == {"n"}
    for name in names():
        for probe in find(name).probes:
            assert not {"n", "n_q"} <= probe.axes().keys(), probe.claim


def test_masks_of_probes_are_what_they_say():
    assert real_keys(SIZES).int().sum(dim=-1).tolist() == [[6], [5]]
    table = no_keys_for_the_first(SIZES)
    assert not table[0].any() and table[1:].any(dim=-1).all()
    some = some_keys(SIZES)
    assert some.any(dim=-1).all() and not some.all()
    square = some_keys(dict.fromkeys(SIZES, 5))
    assert not square.equal(square.mT) and square.any(dim=-1).all()


def test_another_order_in_memory_is_the_same_tensor():
    x = numbers(3, 5)
    inputs = {"x": x, "n": 1}
    in_other_order(inputs)
    assert inputs["x"].equal(x) and not inputs["x"].is_contiguous()
