"""What strangers found at the edges: of numbers, of layers, of files."""

import pytest
import torch
import torch.distributed as dist

from selfattn.devices.ring import ring_attention
from selfattn.efficient.swin import swin_attention
from selfattn.multihead import MultiHeadAttention


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


@pytest.fixture
def alone():
    """A world of one rank."""
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


# The largest numbers


@pytest.mark.parametrize("seed", [2, 3, 6, 7])
def test_a_window_does_not_feel_a_query_that_overflows(seed):
    """Its scores were numbers on the way there, and none on the way back,
    where they were added up in another order: 0 · NaN for the whole window.
    """
    torch.manual_seed(seed)
    q, k, v, g = torch.randn(4, 2, 1, 40, 5)
    q[0, 0, 39] = torch.finfo(torch.float32).max
    g[0, 0, 39] = 0
    inputs = [x.requires_grad_() for x in (q, k, v)]
    output = swin_attention(*inputs, grid=(5, 8), window=(3, 4), shift=(1, 2))
    for grad in torch.autograd.grad(output, inputs, g):
        assert grad.isfinite().all()


@pytest.mark.usefixtures("alone")
def test_a_ring_adds_up_no_more_than_a_mean():
    """A mean times the sum of its weights was infinite, if that was rounded
    up, and divided by that sum only then.
    """
    most = torch.finfo(torch.float32).max
    for n in range(1, 60):
        q, k, v = torch.zeros(1, 1), torch.zeros(n, 1), torch.zeros(n, 1)
        v[0] = most
        wanted = torch.tensor([[most]]).div(n)
        torch.testing.assert_close(ring_attention(q, k, v), wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kept", [False, True])
def test_a_layer_does_not_feel_the_largest_numbers_in_padding(dtype, kept):
    """Neither in a cache: of parameters, too, all gradients are finite."""
    layer = MultiHeadAttention(8, 2).to(dtype)
    numbers, g = torch.randn(2, 2, 6, 8).to(dtype)
    g[1, 4:] = 0
    mask = torch.ones(2, 1, 1, 6, dtype=torch.bool)
    mask[1, ..., 4:] = False
    both = []
    for number in (1.0, torch.finfo(dtype).max):
        x = numbers.clone()
        x[1, 4:] = number
        x.requires_grad_()
        context = layer.keys_values(x) if kept else None
        output = layer(x, context, mask=mask)
        passed = torch.autograd.grad(output, (x, *layer.parameters()), g)
        own = g != 0
        both.append([output[own], passed[0][own], *passed[1:]])
    near = 1e-5 if dtype == torch.float32 else 0.05
    torch.testing.assert_close(*both, atol=near, rtol=near)
