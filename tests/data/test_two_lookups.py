"""Two look-ups at once: both answers stand where they are said to."""

from itertools import islice

import torch

from selfattn.data.relations import D_MODEL, N_DIGITS, N_NAMES
from selfattn.data.two_lookups import neighbours, two_lookup_batches


def test_the_neighbours_of_a_ring_are_mutual():
    names = torch.arange(N_NAMES)
    following, previous = neighbours(names).unbind(-1)
    assert torch.equal(neighbours(following)[:, 1], names)
    assert torch.equal(neighbours(previous)[:, 0], names)
    assert not (following == previous).any()
    assert not (following == names).any()


def test_both_answers_stand_in_the_sentence():
    x, target, where = next(two_lookup_batches(7, seed=3))
    assert x.shape == (7, N_NAMES, D_MODEL)
    assert target.shape == where.shape == (7, N_NAMES, 2)
    for sentence, answers, places in zip(x, target, where, strict=True):
        names = sentence[:, :N_NAMES].argmax(dim=-1).tolist()
        digits = sentence[:, N_NAMES:].argmax(dim=-1).tolist()
        assert sorted(names) == list(range(N_NAMES))
        for i, name in enumerate(names):
            for side, step in enumerate((1, -1)):
                place = int(places[i, side])
                assert names[place] == (name + step) % N_NAMES
                assert digits[place] == answers[i, side]


def test_a_seed_gives_the_same_batches_and_another_gives_others():
    def some(seed):
        batches = two_lookup_batches(5, seed=seed)
        return torch.stack([x for x, _, _ in islice(batches, 3)])

    assert torch.equal(some(0), some(0))
    assert not torch.equal(some(0), some(1))
    assert not torch.equal(*some(0)[:2])


def test_every_digit_occurs():
    x, _, _ = next(two_lookup_batches(200, seed=0))
    assert x[..., N_NAMES:].sum(dim=(0, 1)).gt(0).sum() == N_DIGITS
