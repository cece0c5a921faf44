"""Tales are what they say: echoes, agreement, and who it was."""

from itertools import islice

import pytest
import torch

from selfattn.data.tales import (
    ANIMALS,
    KINDS,
    LONGEST,
    LONGEST_ROUND,
    NOUNS,
    OF_ANIMALS,
    OF_PLACES,
    PLACES,
    SHORTEST_ROUND,
    WORDS,
    decode,
    encode,
    tale_batches,
)


def some(kind, batches=30, size=7):
    return islice(tale_batches(size, seed=0, kind=kind), batches)


def words(tale):
    return [decode(text).split() for text in tale.tokens]


def test_every_text_begins_with_a_full_stop_and_none_is_too_long():
    for kind in KINDS:
        for tale in some(kind):
            assert (tale.tokens[:, 0] == WORDS.index(".")).all()
            assert tale.tokens.shape[1] <= LONGEST
            assert tale.where.shape == (7, len(tale.asked))
            assert (tale.where <= tale.asked).all()
            assert not (tale.tokens == WORDS.index("?")).any()


def test_an_echo_comes_again_after_its_round_and_not_before():
    seen = set()
    for tale in some("echo", 60):
        period = int(tale.asked[0]) - 1
        seen.add(period)
        said = tale.tokens[:, 1:]
        assert torch.equal(said[:, period:], said[:, :-period])
        for text in said[:, :period].tolist():
            assert len(set(text)) == period
        told = tale.tokens.gather(1, tale.where)
        assert torch.equal(told, tale.tokens[:, tale.asked + 1])
        before = tale.tokens.gather(1, tale.where - 1)
        assert torch.equal(before, tale.tokens[:, tale.asked])
    assert seen == set(range(SHORTEST_ROUND, LONGEST_ROUND + 1))


def test_a_verb_agrees_with_the_first_noun_and_what_is_said_with_its_kind():
    lengths, contrary = set(), 0
    for tale in some("agreement", 60):
        lengths.add(tale.tokens.shape[1])
        for text in words(tale):
            many = text[2] in NOUNS[1]
            assert text[tale.asked[0] + 1] == ("is", "are")[many]
            place = NOUNS[many].index(text[2]) >= len(ANIMALS)
            assert text[-2] in (OF_ANIMALS, OF_PLACES)[place]
            nouns = [word for word in text if word in NOUNS[0] + NOUNS[1]]
            contrary += any((noun in NOUNS[1]) != many for noun in nouns)
    assert lengths == {6, 9, 12}
    assert contrary > 100


def test_who_it_was_is_told_by_the_last_word_alone():
    firsts = set()
    for tale in some("coreference"):
        for text, where in zip(words(tale), tale.where, strict=True):
            noun = text[tale.asked[0] + 1]
            assert text[where] == noun
            assert (text[12] in OF_ANIMALS) == (noun in ANIMALS)
            assert (text[12] in OF_PLACES) == (noun in PLACES)
            assert text[-2] == text[12]
            firsts.add((text[2] in ANIMALS, noun in ANIMALS))
    assert len(firsts) == 4  # either noun first, either meant


def test_words_and_numbers():
    assert decode(encode(". the cats sing")) == ". the cats ?"
    assert len(set(WORDS)) == len(WORDS) == 42


def test_kinds_take_turns_and_another_is_refused():
    lengths = [t.tokens.shape[1] for t in islice(tale_batches(2, seed=3), 6)]
    assert lengths[0] == lengths[2] == lengths[3] == lengths[5] == LONGEST
    with pytest.raises(ValueError, match="a kind is one of echo, agreement"):
        next(tale_batches(2, seed=0, kind="poem"))


def test_a_seed_gives_the_same_batches_and_nobody_elses_dice_are_thrown():
    before = torch.get_rng_state()
    one, same, other = (
        [t.tokens.tolist() for t in islice(tale_batches(5, seed=s), 4)]
        for s in (0, 0, 1)
    )
    assert one == same != other
    assert torch.equal(torch.get_rng_state(), before)
