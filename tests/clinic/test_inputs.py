"""Inputs are drawn as a patient's words describe them."""

import pytest
import torch

from tools.measure.clinic.inputs import USUAL, chance, drawn, number

SIZES = {"n": (4, 4), "m": (6, 6), "b": (3, 3), "d": (5, 5), "g": (2, 2)}


def made(empty=False, dtype=torch.float64, optional=1.0, **described):
    """Inputs of these descriptions."""
    by = chance(0, dtype, 1.0, empty)
    return drawn(described, SIZES, by, optional)


@pytest.mark.parametrize(
    ("word", "size"), [("7", 7), ("-1", -1), ("d", 5), ("2*d", 10), ("n+3", 7)]
)
def test_a_size_is_a_number_or_a_letter_with_something(word, size):
    assert number(word, {"d": 5, "n": 4}) == size


def test_numbers_have_their_shape_and_type():
    x = made(x="b 2*g n d", dtype=torch.float16)["x"]
    assert (x.shape, x.dtype) == ((3, 4, 4, 5), torch.float16)


def test_the_same_letter_is_the_same_size():
    q, k = drawn(
        {"q": "n d", "k": "n d"}, {}, chance(5, torch.float64, 1.0)
    ).values()
    assert q.shape == k.shape
    low, high = USUAL["n"]
    assert low <= q.shape[0] <= high


@pytest.mark.parametrize("sort", ["keep", "block", "add"])
def test_a_mask_has_no_empty_row_unless_it_may(sort):
    for empty in (False, True):
        mask = made(empty, mask=f"{sort} b n m")["mask"]
        seen = {"keep": mask, "block": ~mask} if sort != "add" else {}
        seen = seen.get(sort, mask == 0)
        assert seen.any(dim=-1).all() != empty
        assert not seen.all()


def test_padding_stands_at_the_end():
    real = made(real="real b m")["real"].int()
    assert (real.diff(dim=-1) <= 0).all() and real[:, 0].all()
    hidden = made(real="padding b m")["real"]
    assert torch.equal(hidden, real == 0)


def test_texts_are_padded_with_zeros():
    ids = made(x="ids b m")["x"]
    assert ((ids != 0).int().diff(dim=-1) <= 0).all()


def test_lengths_lie_between_one_and_the_width():
    lengths = made(x="lengths b m")["x"]
    assert lengths.shape == (3,) and 1 <= lengths.min() <= lengths.max() <= 6


def test_what_may_be_left_out_is_left_out():
    described = {"x": "n d", "mask?": "keep n n"}
    assert set(made(optional=0.0, **described)) == {"x"}
    assert set(made(optional=1.0, **described)) == {"x", "mask"}


def test_one_tensor_may_have_two_names():
    given = made(query="b n d", key="=query")
    assert given["key"] is given["query"]


def test_the_same_seed_draws_the_same():
    one, other = made(x="b n d"), made(x="b n d")
    assert torch.equal(one["x"], other["x"])


def test_the_future_is_above_the_diagonal():
    assert made(x="future n n")["x"].tolist() == [
        [j > i for j in range(4)] for i in range(4)
    ]
