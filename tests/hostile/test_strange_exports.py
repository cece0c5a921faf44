"""What strangers found of exported graphs, of signals, and of a NaN's way.

As in `test_strangers`, each is a single story.
"""

from functools import partial

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close

from hostile.test_strangers import CAUSAL, MASKED
from selfattn.blocks import EncoderBlock
from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import linear_attention
from selfattn.efficient.linformer import LinformerAttention, MeanPooling
from selfattn.efficient.longformer import longformer_attention
from selfattn.efficient.performer import performer_attention
from selfattn.efficient.reformer import lsh_attention, lsh_buckets
from selfattn.efficient.sparse import fixed_attention, strided_attention
from selfattn.efficient.swin import swin_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.masks import padding_mask
from selfattn.models.decoder import Decoder
from selfattn.models.embedding import Embedding
from selfattn.multihead import KeysValues, MultiHeadAttention
from selfattn.random_features import random_directions

N, D = 13, 7
HALVES = [torch.bfloat16, torch.float16]
OVER_ALL = {
    "fused": fused_attention,
    "window": lambda *x: sliding_window_attention(*x, window=N),
    "longformer": lambda *x: longformer_attention(*x, window=N),
    "swin": lambda *x: swin_attention(*x, grid=(1, N), window=(1, N)),
    "linformer": LinformerAttention(MeanPooling(N)),
}
TRACED = MASKED | CAUSAL | {"swin": OVER_ALL["swin"]}
del TRACED["lsh"]


def traced_by_jit(test):
    """It is on its way out, says PyTorch, and that sizes are kept."""
    for kind in ("DeprecationWarning", "torch.jit.TracerWarning"):
        test = pytest.mark.filterwarnings(f"ignore::{kind}")(test)
    return test


OF_A_LOUD_MEAN = {
    name: CAUSAL[name] for name in ("window", "longformer", "performer")
}


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


class Called(nn.Module):
    """A function as a module, which is what an export wants."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *given):
        return self.call(*given)


@pytest.mark.parametrize(
    ("call", "n_given"),
    [(performer_attention, 3), (lambda q: lsh_buckets(q, n_buckets=4), 1)],
    ids=["performer", "lsh"],
)
def test_an_exported_graph_keeps_the_directions_that_were_drawn(call, n_given):
    """Each call of it drew others: its outputs were off by their size."""
    given = tuple(torch.randn(n_given, 2, N, D))
    graph = torch.export.export(Called(call), given).module()
    for _ in range(3):
        assert_close(graph(*given), call(*given))


@traced_by_jit
@pytest.mark.parametrize("name", TRACED)
def test_what_is_traced_by_jit_is_the_same(name):
    """Sizes are tensors then, which were no whole numbers; and random features
    were drawn anew by each call of the graph.
    """
    given, others = torch.randn(2, 3, 2, N, 4)
    # Its own check compares the names in the graphs of two traces, too.
    graph = torch.jit.trace(
        Called(TRACED[name]), tuple(given), check_trace=False
    )
    assert_close(graph(*others), TRACED[name](*others))


@traced_by_jit
@pytest.mark.parametrize("attend", [attention, fused_attention])
@pytest.mark.parametrize("n", [5, 7])
def test_what_is_traced_by_jit_is_causal_for_all_lengths(attend, n):
    """Whether there are as many queries as keys was a tensor, which PyTorch's
    kernel does not take for a yes; and it is for this one call alone.
    """
    graph = torch.jit.trace(
        Called(partial(attend, causal=True)),
        tuple(torch.randn(3, 2, 5, D)),
        check_trace=False,
    )
    others = torch.randn(2, 5, D), *torch.randn(2, 2, n, D)
    assert_close(graph(*others), attend(*others, causal=True))


@traced_by_jit
@pytest.mark.parametrize(
    "trace", [torch.jit.trace, lambda f, x: make_fx(f)(*x)]
)
def test_buckets_cannot_be_traced(trace):
    """A graph would have those of one call for all: PyTorch fell over them."""
    with pytest.raises(ValueError, match="buckets are of numbers, but q has"):
        trace(Called(lsh_attention), tuple(torch.randn(3, 2, N, D)))


@pytest.mark.parametrize("n_q", [5, 7])
def test_causal_attention_is_compiled_for_lengths_that_vary(n_q):
    """Whether they are equal was a symbol, which PyTorch's kernel does not
    take for a yes.
    """
    torch._dynamo.reset()
    attend = partial(fused_attention, causal=True)
    graph = torch.compile(
        attend, backend="eager", dynamic=True, fullgraph=True
    )
    for n in (5, 6, 7):
        given = torch.randn(2, n_q - 5 + n, D), *torch.randn(2, 2, n, D)
        assert_close(graph(*given), attend(*given))


@pytest.mark.parametrize("name", CAUSAL)
def test_an_export_is_refused_if_it_could_not_run(name):
    """PyTorch could not differentiate what writes into memory at hand, and
    said so when the exported graph was called.
    """
    if name == "lsh":  # whose buckets are of numbers
        return
    layer = MultiHeadAttention(8, 2, attend=CAUSAL[name])
    x = torch.randn(2, N, 8)
    if name in ("window", "longformer"):
        graph = torch.export.export(layer, (x,)).module()
        total = graph(x).square().sum()
        found = torch.autograd.grad(total, [*graph.parameters()])
        total = layer(x).square().sum()
        wanted = torch.autograd.grad(total, [*layer.parameters()])
        assert_close(found, wanted)
        return
    words = f"^{name}_attention must be exported and run without gradients"
    with pytest.raises(ValueError, match=words):
        torch.export.export(layer, (x,))
    with torch.no_grad():
        assert torch.export.export(layer, (x,))
    layer.requires_grad_(False)
    graph = torch.export.export(layer, (x,)).module()
    assert_close(graph(x), layer(x))


def test_a_traced_graph_draws_nothing():
    def directions(x):
        return random_directions(5, 3) + 0 * x

    traced = make_fx(directions)(torch.ones(1))
    for _ in range(2):
        assert_close(traced(torch.ones(1)), random_directions(5, 3))


def test_the_number_of_keys_may_be_left_open_in_an_export():
    """It had to be above 15 or below 16."""
    given = tuple(torch.randn(3, 1, 2, N, D))
    n = torch.export.Dim("n", min=2, max=60)
    graph = torch.export.export(
        Called(lambda q, k, v: fused_attention(q, k, v)),
        given,
        dynamic_shapes=(tuple({2: n} for _ in given),),
    ).module()
    for size in (3, 47):
        given = tuple(torch.randn(3, 1, 2, size, D))
        assert_close(graph(*given), attention(*given))


IN_PIECES = {
    "flash": flash_attention,
    "window": partial(sliding_window_attention, window=3),
    "strided": partial(strided_attention, stride=3),
    "fixed": partial(fixed_attention, stride=3),
    "longformer": partial(longformer_attention, window=3),
    "swin": partial(swin_attention, grid=(1, N), window=(1, 4)),
    "linear": linear_attention,
    "performer": partial(performer_attention, n_features=8),
}


@pytest.mark.parametrize("name", IN_PIECES)
def test_the_number_of_texts_may_be_left_open_in_an_export(name):
    """Three of them cut the batch by its size, or counted it."""
    given = tuple(torch.randn(3, 2, N, D))
    n = torch.export.Dim("n")
    graph = torch.export.export(
        Called(lambda *qkv: IN_PIECES[name](*qkv)),
        given,
        dynamic_shapes=(tuple({0: n} for _ in given),),
    ).module()
    for size in (1, 5, 500):
        given = tuple(torch.randn(3, size, N, D))
        assert_close(graph(*given), IN_PIECES[name](*given))


@pytest.mark.parametrize("name", OVER_ALL)
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16]
)
def test_windows_of_a_signal_may_be_queries(name, dtype):
    """Rows that share numbers: PyTorch's kernel gave what it found in memory,
    and here its kernel was called.
    """
    torch.manual_seed(0)
    signal = torch.randn(3, N + D - 1).to(dtype)
    q, (k, v) = signal.unfold(-1, D, 1), torch.randn(2, 3, N, D).to(dtype)
    before = torch.full((64, 3, N, D), 1e3, dtype=dtype)
    wanted = OVER_ALL[name](q.contiguous(), k, v)
    del before
    assert_close(OVER_ALL[name](q, k, v), wanted)


@pytest.mark.parametrize("name", OVER_ALL)
def test_the_kernel_gets_no_queries_that_share_numbers(name, monkeypatch):
    """What it finds in memory is at times what it should give."""
    asked = []

    def kernel(q, *rest, **options):
        asked.append(q.stride(-2) >= q.shape[-1])
        return usual(q, *rest, **options)

    usual = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        "torch.nn.functional.scaled_dot_product_attention", kernel
    )
    q = torch.randn(3, N + D - 1).unfold(-1, D, 1)
    OVER_ALL[name](q, *torch.randn(2, 3, N, D))
    assert asked and all(asked)


@pytest.mark.parametrize("name", OF_A_LOUD_MEAN)
@pytest.mark.parametrize("dtype", HALVES)
def test_values_far_from_zero_pass_back_what_they_should(name, dtype):
    """In half precision, gradients of q and k were off by up to 14 times what
    PyTorch's are: two terms nearly cancel, and one was made of an output
    that had been rounded.
    """
    attend = OF_A_LOUD_MEAN[name]
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 64, 16)
    inputs = [x.to(dtype) for x in (q, k, v + 10)]
    wave = torch.randn(2, 64, 16).to(dtype)

    def passed_back(attend, dtype):
        given = [x.to(dtype).requires_grad_() for x in inputs]
        output = attend(*given)
        return torch.autograd.grad(output, given[:2], wave.to(dtype))

    exact = passed_back(attend, torch.float64)
    for x, wanted in zip(passed_back(attend, dtype), exact, strict=True):
        # Of the inputs' own rounding, and of what is given back.
        room = 2 * torch.finfo(dtype).eps * float(wanted.norm())
        assert (x.double() - wanted).norm() <= room


def test_the_output_s_matrix_does_not_feel_a_hidden_nan():
    """All other gradients were finite, and that of W_o was NaN."""
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(2, N, 8)
    x[0, 9:] = torch.nan
    mask = padding_mask(torch.tensor([9, N]), N)
    layer(x, mask=mask)[:, :9].sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())
    assert layer.W_o.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("attend", [fused_attention, flash_attention])
def test_a_number_without_a_value_is_refused(attend):
    """A mask of one yes or no on the meta device hid nothing, or anything."""
    q, k, v = torch.randn(3, 2, N, D)
    with pytest.raises(ValueError, match="mask must be where q is, on cpu"):
        attend(q, k, v, mask=torch.tensor(False, device="meta"))


class Step(nn.Module):
    """A step of a decoder, whose cache comes as two tensors."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, token, k, v):
        return self.model.step(token, [KeysValues(k, v)])[0]


@torch.no_grad()
def test_a_step_is_exported_for_a_cache_of_any_length():
    """A set of lengths of which none is known was a TypeError."""
    block = EncoderBlock(8, 2, 16, pre=True)
    model = Decoder(Embedding(11, 8), [block]).eval()
    tokens = torch.tensor([[1, 2, 3, 4, 5]])
    _, [(k, v)] = model.step(tokens[:, :3])
    n = torch.export.Dim.AUTO
    graph = torch.export.export(
        Step(model),
        (tokens[:, 3:4], k, v),
        dynamic_shapes=(None, {2: n}, {2: n}),
        strict=False,
    ).module()
    for kept in (3, 4):
        _, cache = model.step(tokens[:, :kept])
        one = tokens[:, kept : kept + 1]
        torch.testing.assert_close(
            graph(one, *cache[0]), model.step(one, cache)[0]
        )
