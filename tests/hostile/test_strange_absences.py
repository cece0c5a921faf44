"""What strangers found where something is absent: numbers, above all.

On meta, in PyTorch's fake mode, within `torch.func` and while a model is
exported a tensor has a shape and nothing to look at. What asks it all the same
falls in PyTorch's words.
"""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close

from selfattn.looking_inside import entropy, fewest_keys, spread, weight_on
from selfattn.masks import causal_mask, draw
from selfattn.models import complete
from selfattn.origins import AdditiveAttention, Convolution, Translator


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


class Called(nn.Module):
    """A function as a module, as an export wants one."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *given):
        return self.f(*given)


def first_key(weights):
    at = torch.zeros(1, dtype=torch.long, device=weights.device)
    return weight_on(weights, at, at[None])


@pytest.mark.parametrize("read", [entropy, spread, first_key])
def test_weights_without_numbers_are_read_all_the_same(read):
    weights = torch.rand(1, 2, 3, 3).softmax(dim=-1)
    wanted = read(weights)
    exported = torch.export.export(Called(read), (weights,)).module()
    assert_close(exported(weights), wanted)
    with FakeTensorMode():
        assert read(torch.ones(1, 2, 3, 3)).shape == wanted.shape
    assert read(weights.to("meta")).shape == wanted.shape


def after(tokens, cache):
    """The next number, of ten."""
    return torch.eye(10, device=tokens.device)[(tokens[:, -1] + 1) % 10], None


def test_a_text_without_numbers_never_ends_early():
    """Whether all texts have ended was asked of numbers that are not there."""

    def go_on(prompt):
        return complete(after, prompt, 4, stop=9)

    prompt = torch.tensor([[3, 4], [8, 7]])
    wanted = torch.tensor([[3, 4, 5, 6, 7, 8], [8, 7, 8, 9, 9, 9]])
    assert torch.equal(go_on(prompt), wanted)
    exported = torch.export.export(Called(go_on), (prompt,)).module()
    assert torch.equal(exported(prompt), wanted)
    mapped = torch.func.vmap(go_on)(prompt[:, None])
    assert torch.equal(mapped[:, 0], wanted)
    assert go_on(prompt.to("meta")).shape == (2, 6)


def test_a_mask_without_numbers_cannot_be_drawn():
    with pytest.raises(ValueError, match=r"that is at hand.*on meta"):
        draw(causal_mask(2, 3, device="meta"))


def test_lengths_without_numbers_are_refused():
    """The reader counts its steps by them."""
    model = Translator(5, 5, 4, attend=AdditiveAttention(4, 4, 4))
    given = torch.ones(2, 3).long(), torch.ones(2, 2).long()
    lengths = torch.tensor([3, 1])
    with pytest.raises(ValueError, match=r"lengths must be .*at hand"):
        torch.export.export(model, (*given, lengths))
    elsewhere = [x.to("meta") for x in (*given, lengths)]
    with pytest.raises(ValueError, match=r"lengths must be .*on meta"):
        model.to("meta")(*elsewhere)


def test_values_without_features_leave_one_key():
    """The sum of the weights has to stay, and nothing else."""
    found = fewest_keys(torch.tensor([0.25, 0.5, 0.25]), torch.zeros(3, 0))
    assert found.sum() == 1 and found.count_nonzero() == 1


@pytest.mark.parametrize("n", [1, 5, 12])
@pytest.mark.parametrize("options", [{"bias": False}, {"groups": 2}])
def test_another_convolution_is_as_good_for_a_short_text(n, options):
    """Taps beyond it were left out, and with them what the layer is like."""
    model = Convolution(4, kernel=2, n_layers=1)
    layer = nn.Conv1d(4, 4, 2, dilation=9, **options)
    model.layers[0] = layer
    x = torch.randn(2, n, 4)
    padded = torch.nn.functional.pad(x.mT, (5, 4))
    assert_close(model(x), x + layer(padded).mT.relu())
