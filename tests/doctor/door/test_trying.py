"""A thing is called, and whatever it does is no trouble."""

import torch

from selfattn.doctor.door.trying import (
    alike,
    attempt,
    close,
    drawn,
    first_tensor,
    needed,
    tensor,
    two_valued,
)


def wipes(x):
    x.zero_()
    return x, "weights"


def test_what_it_is_given_is_its_own():
    x = drawn(3)
    assert tensor(wipes, x).eq(0).all() and x.ne(0).all()
    assert x.equal(drawn(3)) and not x.equal(drawn(3, seed=1))


def test_what_raises_gives_nothing_and_random_numbers_are_the_same():
    assert attempt(lambda x: 1 / 0, 1) is None
    torch.manual_seed(3)
    before = torch.rand(1)
    torch.manual_seed(3)
    one, two = (attempt(torch.rand, 5) for _ in range(2))
    assert one.equal(two) and torch.rand(1).equal(before)


def test_the_first_that_gives_a_tensor_counts():
    assert first_tensor(torch.ones, (("no",), (2,), (3,))).shape == (2,)
    assert first_tensor(len, (((),),)) is None


def test_only_arguments_without_a_default_are_needed():
    def f(q, k, /, v, mask=None, *rest, scale, **more): ...

    assert needed(f) == ["q", "k", "v", "scale"]
    assert needed(torch.nn.Linear(2, 2)) == ["input"]


def test_forms_are_told_apart():
    x = drawn(2, 3)
    assert alike(x + 1, x) and not alike(x.bool(), x)
    assert not alike(None, x) and not alike(x[0], x)
    assert close(x, x + 1e-5) and not close(x, x + 0.1)
    assert not close(x, x[:1])
    assert two_valued(x > 0) and not two_valued(x)
    assert not two_valued(torch.full((3,), torch.nan))


def test_what_is_asked_for_by_name_alone_is_handed_over_so():
    def told(x, *, memory, scale=2):
        return x - scale * memory

    assert needed(told) == ["x", "memory"]
    assert tensor(told, torch.tensor(7), torch.tensor(3)) == 1
    assert attempt(told, torch.tensor(7)) is None
