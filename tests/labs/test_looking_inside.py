"""The lab on looking inside: the page runs the model that Python has."""

import itertools
import random

import pytest
import torch
from page_numbers import compare_each

from selfattn.data.tales import KINDS, WORDS, decode, tale_batches
from selfattn.labs.looking_inside import NAMES, LookingInsideLab, model, read
from selfattn.labs.looking_inside_model import (
    STORED,
    packed,
    small_decoder,
    trained_model,
    unpacked,
)
from selfattn.looking_inside import heads_of

# float64 on both sides, sums of at most 64 products through two blocks.
CLOSE = 1e-9
FLAGS = [f"head_{name.replace('.', '_')}" for name in NAMES]


def any_setting(chance):
    """One of all settings: a text of its own kinds, or of any words."""
    kind = chance.choice([*KINDS, None])
    if kind is None:
        some = chance.choices([*WORDS, "whale"], k=chance.randint(1, 19))
        words = " ".join(some)
    else:
        seed = chance.randrange(1000)
        tale = next(tale_batches(1, seed=seed, kind=kind))
        words = decode(tale.tokens[0, 1:])
    flags = {name: chance.random() < 0.7 for name in FLAGS}
    return {"words": words, "head": chance.randrange(8)} | flags


def settings():
    """Every head off alone, every pair of them, all, and 30 at random."""
    chance = random.Random(0)
    start = LookingInsideLab().values()
    yield start
    for n in (1, 2, len(FLAGS)):
        for off in itertools.combinations(FLAGS, n):
            yield start | dict.fromkeys(off, False)
    for _ in range(30):
        yield any_setting(chance)


def compare(theirs, values):
    """Raise AssertionError unless the page has what the package has."""
    ours = read(**values)
    for name in ("read", "unknown", "off"):
        assert theirs[name] == getattr(ours, name), name
    for name in ("nats", "without"):
        assert theirs[name] == pytest.approx(getattr(ours, name), abs=CLOSE)
    for name in ("loss", "whole"):
        assert theirs[name] == pytest.approx(getattr(ours, name), abs=CLOSE)
    for name in ("scores", "weights"):
        mine, other = (
            torch.tensor(x) for x in (getattr(ours, name), theirs[name])
        )
        assert mine.shape == other.shape
        assert (mine - other).abs().max() < 1e-5
    for (word, share), (same, part) in zip(
        ours.guesses, theirs["guesses"], strict=True
    ):
        assert part == pytest.approx(share, abs=CLOSE)
        assert word == same or share == pytest.approx(part)


def test_the_page_computes_as_the_package(in_node, unopened):
    many = list(settings())
    calls = [["compute", values] for values in many]
    compare_each(compare, in_node("looking_inside", calls), many)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("+ EPS", ""),
        ("sum / Math.sqrt(d)", "sum"),
        ("on[layer * N_HEADS + h]", "true"),
        ("Math.max(a, 0)", "a"),
        ("+ places.table[i * d_model + c]", ""),
        ("2 ** power", "2 ** (power + 1)"),
        ("ALL.with(h, false)", "ALL"),
        (
            "-Math.log(shares(scores[i])[token])",
            "-Math.log(shares(scores[i])[0])",
        ),
    ],
)
def test_a_planted_mistake_is_seen(planted, right, wrong):
    sample = list(itertools.islice(settings(), 12))
    theirs = planted("looking_inside", right, wrong, sample)
    with pytest.raises(AssertionError):
        compare_each(compare, theirs, sample)


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    chance = random.Random(1)
    many = [any_setting(chance) for _ in range(100)]
    assert_links_bring_back(LookingInsideLab(), many)


def test_the_names_are_those_of_the_model():
    assert list(heads_of(model())) == NAMES


def test_switching_off_says_what_it_says():
    lab = LookingInsideLab(head_2_1=False, head_1_3=False)
    now = lab.read()
    assert now.off == ["1.3", "2.1"]
    assert now.loss != now.whole
    assert now.whole == LookingInsideLab().read().loss
    one = LookingInsideLab(head_2_1=False).read()
    assert one.loss == one.without[NAMES.index("2.1")]


def test_the_still_picture_and_its_words_are_of_this_setting():
    lab = LookingInsideLab(words="cat river cat", head_1_2=False)
    assert (
        repr(lab) == "LookingInsideLab(words='cat river cat', head_1_2=False)"
    )
    assert "over 4 words" in lab.describe()
    assert "without 1.2" in lab.describe()
    heat, bars = lab.figure().axes
    assert heat.images[0].get_array().shape == (4, 4)
    assert len(bars.patches) == 3


# The weights


def test_stored_weights_are_those_that_were_trained_to_sixteen_bits():
    fresh = small_decoder()
    with torch.no_grad():
        fresh.norm.shift.add_(0.25)  # zeros have no scale
        for block in fresh.blocks:
            for path in (block.add_norm_1, block.add_norm_2):
                path.norm.shift.add_(0.25)
    back = unpacked(packed(fresh))
    for name, weight in fresh.state_dict().items():
        largest = weight.abs().max().item()
        assert back[name].shape == weight.shape
        assert (back[name] - weight).abs().max() <= largest / 2**14


def test_a_changed_number_is_seen():
    text = STORED.read_text("utf-8")
    at = text.index('"numbers"') + 40
    other = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
    assert len(unpacked(text)) == 29
    with pytest.raises(ValueError, match="must have the digest written"):
        unpacked(other)


def test_the_file_is_small():
    assert STORED.stat().st_size < 300_000


@torch.no_grad()
def test_the_stored_weights_give_the_stated_loss():
    """That of the words that need a look back, on new texts."""
    stated = {"echo": 0.02, "coreference": 0.05}
    for kind, most in stated.items():
        tale = next(tale_batches(200, seed=123, kind=kind))
        scores = trained_model()(tale.tokens)[:, tale.asked].flatten(0, 1)
        truth = tale.tokens[:, tale.asked + 1].flatten()
        loss = torch.nn.functional.cross_entropy(scores, truth).item()
        assert loss < most, kind
        assert (scores.argmax(-1) == truth).float().mean() > 0.99
