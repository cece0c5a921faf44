"""Text that repeats itself does, and not sooner than it says."""

from itertools import islice

import torch

from selfattn.data.repeats import (
    LENGTH,
    LONGEST,
    N_TOKENS,
    SHORTEST,
    repeat_batches,
)


def test_tokens_come_again_after_the_period_and_not_before():
    seen = set()
    for tokens, period in islice(repeat_batches(7, seed=0), 60):
        seen.add(period)
        assert tokens.shape == (7, LENGTH)
        assert tokens.min() >= 0 and tokens.max() < N_TOKENS
        assert torch.equal(tokens[:, period:], tokens[:, :-period])
        for text in tokens[:, :period].tolist():
            assert len(set(text)) == period
    assert seen == set(range(SHORTEST, LONGEST + 1))


def test_texts_of_a_batch_differ():
    tokens, _ = next(repeat_batches(7, seed=0))
    assert len({tuple(text) for text in tokens.tolist()}) == 7


def test_a_seed_gives_the_same_batches_and_another_gives_others():
    def some(seed):
        return [x.tolist() for x, _ in islice(repeat_batches(5, seed=seed), 3)]

    assert some(0) == some(0)
    assert some(0) != some(1)
    assert some(0)[0] != some(0)[1]
