"""What strangers found of layers that are compiled, and of ranks that are.

As in `test_strangers`, each is a single story.
"""

import importlib
import subprocess
import sys
import threading
import warnings
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from selfattn.blocks import EncoderBlock
from selfattn.devices.ring import ring_attention
from selfattn.devices.ulysses import ulysses_attention
from selfattn.devices.world import on_ranks
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.longformer import longformer_attention
from selfattn.efficient.sparse import fixed_attention, strided_attention
from selfattn.efficient.swin import swin_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.looking_inside import (
    change_heads,
    heads_of,
    record_heads,
    record_weights,
)
from selfattn.models import Decoder, Embedding
from selfattn.multihead import MultiHeadAttention

RANKED = [ring_attention, ulysses_attention]
# In a process of its own: what checks each call here has one code, too.
NINE_LAYERS = """
import torch
from selfattn.layers import *
from selfattn.multihead import MultiHeadAttention
from selfattn.models import ClassHead, LabelHead, Pooler
from selfattn.positions import rope, rope_halves, pairs_to_halves
x = torch.randn(2, 5, 8)
layers = LayerNorm(8), RMSNorm(8), FeedForward(8, 16), SwiGLU(8, 16)
heads = MultiHeadAttention(8, 2), ClassHead(8, 3), LabelHead(8, 3), Pooler(8)
functions = gelu, swish, rope, rope_halves, pairs_to_halves
for layer in (*layers, *heads, *functions):
    whole = torch.compile(layer, backend="eager", fullgraph=True)
    torch.testing.assert_close(whole(x), layer(x))
"""

COMPILED_FIRST_WITHIN = """
import sys, torch
from selfattn.blocks import EncoderBlock
from selfattn.looking_inside import change_heads, heads_of, record_weights
model, x = EncoderBlock(8, 2, 16, pre=True), torch.randn(1, 3, 8)
off = dict.fromkeys(heads_of(model), 0.0)
with change_heads(model, off):
    wanted = model(x)
assert "torch._dynamo" not in sys.modules
with change_heads(model, off), record_weights(model) as weights:
    step = torch.compile(lambda x: model(x), backend="eager")
    torch.testing.assert_close(step(x), wanted)
assert len(weights) == 1
torch.testing.assert_close(step(x), model(x))
"""


@pytest.fixture(scope="module")
def compiler():
    """At hand, so that each rank need not import it."""
    return importlib.import_module("torch._dynamo")


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


# What is compiled


def test_a_traceback_names_the_method_that_was_called():
    """What wraps it stood there as "told" or "kept", as of any other."""
    with pytest.raises(ValueError, match="x must be") as raised:
        MultiHeadAttention(8, 2)(torch.randn(5, 8))
    names = {
        one.name for one in raised.traceback if "selfattn" in one.path.parts
    }
    assert "forward" in names and not names & {"told", "kept"}
    assert MultiHeadAttention.forward.__qualname__.endswith("tion.forward")


def compiled(rank, n_ranks, attend, fullgraph):
    torch.manual_seed(rank)
    x, same = (torch.randn(1, 2, 3, 4, requires_grad=True) for _ in "ab")
    same.data.copy_(x)
    graph = torch.compile(attend, backend="eager", fullgraph=fullgraph)
    made, wanted = (
        graph(x, x, x, causal=True),
        attend(*[same] * 3, causal=True),
    )
    assert_close(made, wanted)
    grads = (
        torch.autograd.grad(y.sum(), z) for y, z in ((made, x), (wanted, same))
    )
    assert_close(*grads)
    with torch.no_grad():  # with graphs before and behind
        layer = MultiHeadAttention(8, 2, attend=attend)
        parts = torch.compile(layer, backend="eager", fullgraph=fullgraph)
        x = torch.randn(1, 3, 8)
        assert_close(parts(x, causal=True), layer(x, causal=True))
    return True


@pytest.mark.parametrize("attend", RANKED)
def test_what_ranks_tell_each_other_is_not_compiled(attend, compiler):
    """`InternalTorchDynamoError`: '_device_types' of an opaque object."""
    work = partial(compiled, attend=attend, fullgraph=False)
    assert on_ranks(work, 2) == [True, True]


@pytest.mark.parametrize("attend", RANKED)
def test_a_whole_graph_of_ranks_is_refused_in_words(attend, compiler):
    work = partial(compiled, attend=attend, fullgraph=True)
    with pytest.raises(RuntimeError, match="ranks first tell each other"):
        on_ranks(work, 2)


def test_nine_layers_are_compiled_in_one_process():
    """The ninth was not: all methods had one code, compiled anew for each."""
    done = subprocess.run(
        [sys.executable, "-c", NINE_LAYERS],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-500:]


# What is compiled together with those who look inside


def block_and_input():
    return EncoderBlock(8, 2, 16, pre=True), torch.randn(1, 3, 8)


def decoder_and_input():
    blocks = [EncoderBlock(8, 2, 16, pre=True) for _ in "ab"]
    return Decoder(Embedding(11, 8), blocks), torch.randint(11, (2, 4))


def looks(model):
    """A step that looks into a model in every way, one in the other."""
    off = dict.fromkeys(heads_of(model), 0.0)

    def step(x):
        before = model(x)
        with change_heads(model, off):
            changed = model(x)
        with record_heads(model) as heads:
            model(x)
        with record_weights(model) as weights:
            model(x)
        with change_heads(model, off), record_heads(model) as none:
            again = model(x)
        return before, changed, heads, weights, again, none, model(x)

    return step


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("made", [block_and_input, decoder_and_input])
def test_who_looks_inside_may_be_compiled(made, backend, compiler):
    """Of a block no head changed and none was recorded, in silence: PyTorch
    compiled its call, where no hook of ours knew the layer again.
    """
    model, x = made()
    step = looks(model)
    wanted = step(x)
    assert (wanted[0] - wanted[1]).abs().max() > 1e-3
    compiled = torch.compile(step, backend=backend)
    with torch.no_grad():  # else PyTorch warns of what it does itself
        for _ in range(2):
            assert_close(compiled(x), wanted)


@pytest.mark.parametrize(
    "look",
    [record_heads, record_weights, lambda model: change_heads(model, {})],
)
def test_who_looks_inside_is_in_no_whole_graph(look, compiler):
    model, x = block_and_input()

    def step(x):
        with look(model):
            return model(x)

    whole = torch.compile(step, backend="eager", fullgraph=True)
    with pytest.raises(RuntimeError, match="one who looks inside has the"):
        whole(x)


def test_of_two_who_look_inside_both_may_be_compiled(compiler):
    """Only whom PyTorch let take its stance would have been heard."""
    (model, x), (other, _) = block_and_input(), block_and_input()
    begun, over = threading.Event(), threading.Event()

    def elsewhere():
        with record_heads(other):
            begun.set()
            over.wait(60)

    thread = threading.Thread(target=elsewhere)

    def step(x):
        before = model(x)
        thread.start()
        begun.wait(60)
        with record_heads(model) as heads:
            model(x)
        return before, heads

    with torch.no_grad():
        _, heads = torch.compile(step, backend="eager")(x)
    over.set()
    thread.join()
    assert heads.keys() == heads_of(model).keys()


def test_what_is_compiled_first_of_all_is_looked_into():
    """Nothing had PyTorch's stance then, for there was no compiler."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILED_FIRST_WITHIN],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-500:]


# What is traced

BY_SHAPES = {
    "flash": lambda q, n: flash_attention(
        q, q, q, block_q=n // 3, block_k=n // 4
    ),
    "window": lambda q, n: sliding_window_attention(q, q, q, window=n // 4),
    "longformer": lambda q, n: longformer_attention(
        q, q, q, window=n // 4, global_at=[n // 2]
    ),
    "strided": lambda q, n: strided_attention(q, q, q, stride=n // 4),
    "fixed": lambda q, n: fixed_attention(
        q, q, q, stride=n // 4, n_summaries=n // 6
    ),
    "swin": lambda q, n: swin_attention(
        q, q, q, grid=(2, n // 2), window=(2, n // 4), shift=(0, n // 6)
    ),
}


@pytest.mark.parametrize("name", BY_SHAPES)
def test_options_may_be_read_off_a_shape_that_is_traced(name):
    """`RuntimeError`: unordered_map::at. Lengths are tensors there."""
    q = torch.randn(2, 12, 4)

    def attend(q):
        return BY_SHAPES[name](q, q.shape[-2])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is not for long, PyTorch says
        traced = torch.jit.trace(attend, q, check_trace=False)
    assert_close(traced(q), attend(q))
