"""The generated tasks are what they say, and the same for a seed."""

from itertools import islice

import pytest
import torch

from selfattn.data.relations import (
    D_MODEL,
    N_DIGITS,
    N_NAMES,
    related,
    relation_batches,
)


@pytest.mark.parametrize("cycle", [1, 2, 3, 6])
def test_after_as_many_steps_as_a_cycle_has_one_is_back(cycle):
    names = start = torch.arange(N_NAMES)
    for step in range(1, cycle + 1):
        names = related(names, cycle)
        assert torch.equal(names, start) == (step == cycle)


def test_only_itself_and_a_pair_are_mutual():
    start = torch.arange(N_NAMES)
    mutual = {
        cycle: torch.equal(related(related(start, cycle), cycle), start)
        for cycle in (1, 2, 3, 6)
    }
    assert mutual == {1: True, 2: True, 3: False, 6: False}


@pytest.mark.parametrize("cycle", [0, 4, 5])
def test_cycles_must_come_out_even(cycle):
    with pytest.raises(ValueError, match=rf"must divide .* cycle={cycle}"):
        related(torch.arange(N_NAMES), cycle)


@pytest.mark.parametrize("cycle", [1, 2, 3, 6])
def test_the_answer_stands_in_the_sentence(cycle):
    x, target, where = next(relation_batches(cycle, 7, seed=3))
    assert x.shape == (7, N_NAMES, D_MODEL)
    for sentence, answers, places in zip(x, target, where, strict=True):
        names = sentence[:, :N_NAMES].argmax(dim=-1).tolist()
        digits = sentence[:, N_NAMES:].argmax(dim=-1).tolist()
        assert sorted(names) == list(range(N_NAMES))
        for name, answer, place in zip(names, answers, places, strict=True):
            first = name - name % cycle
            wanted = first + (name + 1 - first) % cycle
            assert names[place] == wanted
            assert digits[place] == answer


def test_a_seed_gives_the_same_batches_and_another_gives_others():
    def some(seed):
        return [x for x, _, _ in islice(relation_batches(2, 5, seed=seed), 3)]

    assert torch.equal(torch.stack(some(0)), torch.stack(some(0)))
    assert not torch.equal(torch.stack(some(0)), torch.stack(some(1)))
    assert not torch.equal(*some(0)[:2])


def test_every_digit_occurs():
    x, _, _ = next(relation_batches(6, 200, seed=0))
    assert x[..., N_NAMES:].sum(dim=(0, 1)).gt(0).sum() == N_DIGITS
