"""The check of types is written once for each signature, and for each."""

import re
from pathlib import Path

import pytest
from beartyped import once
from jaxtyping import Float, Int, jaxtyped
from torch import Tensor, ones


def within(annotation):
    """A function of a name that it shares, as jaxtyping checks it."""

    def inner(x: annotation) -> annotation:
        return x

    return jaxtyped(inner, typechecker=once)


@pytest.mark.parametrize("again", range(2))
def test_functions_of_one_name_are_held_to_their_own_signature(again):
    x = ones(2, 3)
    assert within(Float[Tensor, "n d"])(x) is x
    for other in (Float[Tensor, " n"], Int[Tensor, "n d"], int):
        with pytest.raises(TypeError, match="checking the parameters"):
            within(other)(x)


def test_two_arguments_agree_about_an_axis_at_every_call():
    def pair(x: Float[Tensor, " n"], y: Float[Tensor, " n"]) -> None:
        pass

    for n in (2, 3):
        jaxtyped(pair, typechecker=once)(ones(n), ones(n))
        with pytest.raises(TypeError, match="checking the parameters"):
            jaxtyped(pair, typechecker=once)(ones(n), ones(n + 1))


def test_a_default_that_is_no_key_is_no_hindrance():
    def listing(x: list = []) -> list:  # noqa: B006
        return x

    assert jaxtyped(listing, typechecker=once)() == []
    with pytest.raises(TypeError, match="checking the parameters"):
        jaxtyped(listing, typechecker=once)(1)


def test_an_axis_that_is_computed_is_computed_at_every_call():
    def more(x: Float[Tensor, " n"], by: int) -> Float[Tensor, " n+{by}"]:
        return ones(5)

    checked = jaxtyped(more, typechecker=once)
    for n in (2, 3):
        assert checked(ones(n), 5 - n).shape == (5,)
        with pytest.raises(TypeError, match="checking the return value"):
            checked(ones(n), 4 - n)


def test_what_has_passed_passes_for_nothing_else():
    """Of many calls that are alike one is checked, and of others each."""

    def mixed(
        x: Float[Tensor, "*batch n"],
        more: list[Int[Tensor, " n"]],
        **rest: int,
    ) -> tuple[Tensor, int]:
        return (x, 1) if rest.get("right", 1) else (1, x)

    checked = jaxtyped(mixed, typechecker=once)
    fine = ones(2, 3), [ones(3).long()]
    for _ in range(2):
        checked(*fine)
        for wrong in (
            (ones(2, 3).long(), fine[1]),
            (ones(2, 4), fine[1]),
            (ones(2, 3), [ones(3)]),
            (ones(2, 3), tuple(fine[1])),
            (ones(2, 3), [None]),
            (None, fine[1]),
        ):
            with pytest.raises(TypeError, match="checking the parameters"):
                checked(*wrong)
        with pytest.raises(TypeError, match="checking the return value"):
            checked(*fine, right=0)


def test_no_annotation_asks_for_more_than_is_looked_at():
    """A shape by an object's attribute would be remembered by its type."""
    annotation = re.compile(r"Tensor, ?\"([^\"]*)\"")
    asked = [
        axes
        for path in Path("src").rglob("*.py")
        for axes in annotation.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(asked) > 100
    assert [axes for axes in asked if "." in axes.replace("...", "")] == []
