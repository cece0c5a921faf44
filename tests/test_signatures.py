"""What does not fit a signature is named, with the rule and what was given."""

import math
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from selfattn.data.repeats import repeat_batches
from selfattn.efficient.performer import performer_attention
from selfattn.efficient.reformer import lsh_attention
from selfattn.random_features import random_directions
from selfattn.signatures import Count, Positive, Share, checked


@checked
def joined(
    x: Float[Tensor, "*batch n d"],
    y: Float[Tensor, "*batch m d"],
    tokens: Int[Tensor, "batch n"] | None = None,
    *,
    mask: Bool[Tensor, "..."] | None = None,
    times: int = 1,
    scale: float | None = None,
    causal: bool = False,
    grid: tuple[int, int] = (1, 1),
    names: Sequence[str] = (),
    path: str | Path = "",
    make: Callable[[int], nn.Module] = nn.Identity,
    n_new: Count = 0,
    n_heads: Positive | None = None,
    dropout: Share = 0.0,
    anything=None,
) -> Tensor:
    """All that a signature can say."""
    return torch.cat((x, y), dim=-2) * times


X, Y = torch.ones(2, 3, 4), torch.ones(2, 5, 4)


def test_what_fits_passes():
    tokens = torch.zeros(2, 3, dtype=torch.int32)
    options = {"times": 2, "scale": 1, "path": Path("a"), "anything": object()}
    assert joined(X, Y, tokens, **options).shape == (2, 8, 4)
    assert joined(X[0].half(), Y[0].half()).shape == (8, 4)
    assert joined(x=X, y=Y, grid=[2, 3], scale=math.inf).shape == (2, 8, 4)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"x": [1.0]}, r"x must be a tensor of .*but it is \[1.0\]"),
        ({"x": None}, r"x must .* axes \(..., n, d\), but it is None"),
        ({"x": X.to_sparse()}, "x must .*torch.sparse_coo"),
        ({"tokens": "ab"}, "tokens must be .* or None, but it is 'ab'"),
        ({"times": 2.5}, "times must be a whole number, but it is 2.5"),
        ({"times": True}, "times must be a whole number, but it is True"),
        ({"times": torch.tensor(2)}, r"times must be .* \(\) of torch.int64"),
        ({"scale": True}, "scale must be a number"),
        ({"n_new": "3"}, "n_new must be a whole number, at least 0, but it"),
        ({"dropout": None}, "dropout must be a number other than NaN, at lea"),
        ({"causal": "no"}, "causal must be True or False, but it is 'no'"),
        ({"causal": 1}, "causal must be True or False, but it is 1"),
        ({"grid": (1, 2, 3)}, "grid must be a tuple of 2 whole numbers"),
        ({"grid": (1, 2.5)}, r"grid must be .* but it is \(1, 2.5\)"),
        ({"names": 3}, "names must be a Sequence, but it is 3"),
        ({"path": 3}, "path must be a text or a Path, but it is 3"),
        ({"make": "gelu"}, "make must be a function or a module, but it is"),
    ],
)
def test_another_type_is_refused(given, says):
    with pytest.raises(TypeError, match=says):
        joined(**{"x": X, "y": Y, **given})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"x": X.long()}, r"floating-point .*\(2, 3, 4\) of torch.int64"),
        ({"x": X.cfloat()}, "floating-point .*torch.complex64"),
        ({"x": X[0, 0]}, r"with axes \(..., n, d\), but it is \(4,\)"),
        ({"tokens": X[0]}, r"whole numbers with axes \(batch, n\) or None"),
        ({"tokens": torch.zeros(3).long()}, r"but it is \(3,\) of torch.int"),
        ({"mask": X}, "mask must be a tensor of True and False or None"),
        ({"y": Y[..., :3]}, r"x and y must agree in the axis d, but x is "),
        ({"tokens": torch.zeros(2, 4).long()}, "agree in the axis n, but x"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused(given, says):
    with pytest.raises(ValueError, match=says):
        joined(**{"x": X, "y": Y, **given})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"scale": math.nan}, "scale must be a number other than NaN or None"),
        ({"n_new": -1}, "n_new must be a whole number, at least 0, but it is"),
        ({"n_heads": 0}, "n_heads must be .* at least 1 or None, but it is 0"),
        ({"dropout": 1.5}, "dropout must .* at least 0 and at most 1, but it"),
    ],
)
def test_a_number_out_of_bounds_is_refused(given, says):
    assert joined(X, Y, n_new=0, n_heads=1, dropout=1.0) is not None
    with pytest.raises(ValueError, match=says):
        joined(X, Y, **given)


def test_it_is_the_same_function_to_pickle_and_to_transforms():
    assert pickle.loads(pickle.dumps(joined)) is joined
    mapped = torch.func.vmap(joined, in_dims=(0, 0))(X, Y)
    assert torch.equal(mapped, joined(X, Y))


def test_it_is_traced_as_one_graph():
    """In a process of its own: here, jaxtyping checks the checks as well."""
    code = """
        import torch
        from jaxtyping import Float
        from torch import Tensor
        from selfattn.signatures import checked
        @checked
        def doubled(x: Float[Tensor, "*batch n"], times: int = 2) -> Tensor:
            return x * times
        fast = torch.compile(doubled, backend="eager", fullgraph=True)
        assert fast(torch.ones(2, 3)).sum() == 12
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    assert subprocess.run(command).returncode == 0


def test_what_other_decorators_wrap_is_checked_by_position_too():
    @checked
    @torch.no_grad()
    def times(x: Float[Tensor, " n"], n: int) -> Tensor:
        return x * n

    assert times(torch.ones(2), 3).sum() == 6
    with pytest.raises(TypeError, match="n must be a whole number, but it is"):
        times(torch.ones(2), "3")


def test_methods_and_constructors_are_checked_too():
    class Layer(nn.Module):
        @checked
        def __init__(self, d: int, layer: nn.Module | None = None):
            super().__init__()
            self.d = d

        @checked
        def forward(self, x: Float[Tensor, "n {self.d}"]) -> Tensor:
            return x

    with pytest.raises(TypeError, match="d must be a whole number, but it is"):
        Layer("4")
    with pytest.raises(TypeError, match="layer must be a module or None, but"):
        Layer(4, "text")
    with pytest.raises(TypeError, match=r"x must .*but it is None"):
        Layer(4)(None)


@pytest.mark.parametrize(
    "call",
    [
        lambda seed: random_directions(3, 2, seed=seed),
        lambda seed: performer_attention(*torch.randn(3, 4, 4), seed=seed),
        lambda seed: lsh_attention(
            *torch.randn(3, 4, 4), n_buckets=2, seed=seed
        ),
        lambda seed: next(repeat_batches(size=1, seed=seed)),
    ],
)
def test_a_seed_is_one_that_a_generator_takes(unchecked, call):
    for fine in (-1, 0, 2**64 - 1):
        call(fine)
    for wrong in (2**64, -(2**63) - 1, 10**5000):
        with pytest.raises(ValueError, match="seed must be a whole number"):
            call(wrong)
