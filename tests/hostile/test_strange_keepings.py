"""What strangers found of how numbers are kept: bound, dealt out, exported.

As in `test_strangers`, each is a single story: a wrong answer, nonsense that
was taken, or an obscure error.
"""

import copy
import functools
import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize, prune
from torch.testing import assert_close

from hostile.replicas import replica
from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.cost import flops
from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.reformer import lsh_attention
from selfattn.efficient.sparse import fixed_attention, strided_attention
from selfattn.layers import FeedForward, SwiGLU
from selfattn.models import Decoder, Embedding, complete
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import ShawAttention, TransformerXLAttention


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


# Parameters that are bound


def heated(q, k, v, *, mask=None, bias=None, causal=False, heat=1.0):
    """Attention, the more alike the higher the heat; there is a usual one."""
    return attention(q / heat, k, v, mask=mask, bias=bias, causal=causal)


def turned(x, by, *, offset):
    """A rotation that takes what it turns by as it comes, by its place."""
    return x * by + offset


class Doubled(nn.Module):
    """A parametrisation: twice what is kept."""

    def forward(self, kept):
        """Make the parameter anew."""
        return 2 * kept


def layer_of(**options):
    """A layer of two heads, and tokens for it."""
    torch.manual_seed(0)
    return MultiHeadAttention(8, 2, **options), torch.randn(1, 4, 8)


def hot(heat):
    """One that binds its heat, a parameter, by name."""
    heat = nn.Parameter(torch.tensor(heat))
    return layer_of(attend=partial(heated, heat=heat))


def test_a_bound_parameter_may_be_made_anew():
    """It was looked for among those that are kept, not found, and left out:
    the function took its default, and said nothing.
    """
    layer, x = hot(2.0)
    parametrize.register_parametrization(
        layer.attend.learned, "heat", Doubled()
    )
    assert_close(layer(x), hot(4.0)[0](x))
    assert layer.attend.keywords["heat"] == 4


def test_a_bound_parameter_may_be_pruned():
    """What is kept then has another name, that no function takes."""
    layer, x = hot(2.0)
    prune.identity(layer.attend.learned, "heat")
    assert_close(layer(x), hot(2.0)[0](x))


@pytest.mark.parametrize(
    "make",
    [
        lambda: hot(2.0),
        lambda: layer_of(rotate=partial(turned, nn.Parameter(torch.ones(1)))),
        lambda: layer_of(attend=ShawAttention(4, max_distance=2)),
    ],
    ids=["by name", "by place", "within a module"],
)
def test_a_replica_has_what_is_bound(make):
    """As `torch.nn.DataParallel` makes it for each GPU: its parameters are
    tensors, and no module keeps them as its own.
    """
    layer, x = make()
    assert_close(replica(layer)(x), layer(x))
    layer(x).sum().backward()
    kept = [*layer.parameters()]
    wanted = [p.grad.clone() for p in kept]
    layer.zero_grad()
    replica(layer)(x).sum().backward()
    for p, grad in zip(kept, wanted, strict=True):
        assert_close(p.grad, grad)


# Weights that are made anew


class Widened(nn.Module):
    """A parametrisation: what is kept in bfloat16, in float32."""

    def forward(self, kept):
        """Make the weight anew."""
        return kept.float()


@pytest.mark.parametrize(
    ("make", "width"),
    [
        (lambda: MultiHeadAttention(8, 2), 8),
        (lambda: MultiHeadAttention(8, 2, attend=fused_attention), 8),
        (lambda: FeedForward(8, 9, bias=False), 8),
        (lambda: SwiGLU(8, 9), 8),
    ],
    ids=["attention", "fused", "feed forward", "SwiGLU"],
)
def test_a_weight_may_be_kept_in_another_type(make, width):
    """The type of what is kept was asked for, and tokens refused that the
    weight would have taken.
    """
    torch.manual_seed(0)
    layer, x = make(), torch.randn(2, 5, width)
    narrow = copy.deepcopy(layer)
    for part in narrow.modules():
        if isinstance(part, nn.Linear):
            part.to(torch.bfloat16)
            parametrize.register_parametrization(
                part, "weight", Widened(), unsafe=True
            )
    assert_close(narrow(x), layer(x), atol=0.02, rtol=0.02)


def test_a_weight_that_keeps_its_type_still_asks_for_it():
    """A parametrisation alone is no leave to take any numbers."""
    layer = MultiHeadAttention(8, 2)
    parametrize.register_parametrization(layer.W_q, "weight", Doubled())
    with pytest.raises(ValueError, match="x must have the type of the layer"):
        layer(torch.zeros(1, 4, 8).double())


# Tokens of several texts in one


@pytest.mark.parametrize("what", ["tokens", "segments"])
def test_a_token_without_a_vector_is_told_within_vmap(what):
    """Numbers were asked for to name them, where there are several in one:
    the error was one of PyTorch's, of ``.item()``.
    """
    embed, known = Embedding(11, 8, n_segments=2), torch.zeros(1, 2).long()

    def looked_up(ids):
        given = {"tokens": known, "segments": known} | {what: ids[None]}
        return embed(given.pop("tokens"), **given)

    with pytest.raises(ValueError, match=f"{what} must be numbers from 0 to"):
        torch.func.vmap(looked_up)(torch.tensor([[0, 1], [0, 99]]))


# Hidden keys of the largest numbers


@pytest.mark.parametrize("scale", [1.5, -3.0, 1e4])
@pytest.mark.parametrize("how", ["a trained bias", "wider values", "neither"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16]
)
def test_who_sees_nothing_does_not_feel_a_scaled_key(scale, how, sign, dtype):
    """Its own query is taken for zeros, and PyTorch multiplied the key by the
    root of the scale first: 0 · ∞, for the values of others, too.
    """
    most = torch.finfo(dtype).max
    q = torch.full((1, 2), sign, dtype=dtype, requires_grad=True)
    k = torch.full((1, 2), most, dtype=dtype)
    n_v = 3 if how == "wider values" else 2
    v = torch.ones(1, n_v, dtype=dtype, requires_grad=True)
    told = {"mask": torch.tensor([[False]]), "scale": scale}
    if how == "a trained bias":
        told["bias"] = torch.zeros(1, 1, dtype=dtype, requires_grad=True)
    output = fused_attention(q, k, v, **told)
    assert_close(output, torch.zeros_like(output))
    for grad in torch.autograd.grad(output.sum(), (q, v)):
        assert_close(grad, torch.zeros_like(grad))


@pytest.mark.parametrize("scale", [2.0, -2.0])
def test_the_largest_keys_beside_zeros_have_scores_of_zero(scale):
    """Seen, too, and beside a spoilt one that is hidden."""
    q = torch.zeros(1, 2, requires_grad=True)
    k = torch.tensor([[3e38, -3e38], [1.0, 1.0], [math.nan, 0.0]])
    v = torch.randn(3, 4, requires_grad=True)
    told = {"mask": torch.tensor([True, True, False]), "scale": scale}
    pair = []
    for attend in (fused_attention, attention):
        output = attend(q, k, v, **told)
        grads = torch.autograd.grad(output.square().sum(), (q, v))
        pair.append((output, *grads))
    for one, other in zip(*pair, strict=True):
        assert_close(one, other)


# Exports for any number of queries, and any of keys


class Attending(nn.Module):
    """A mechanism as a module, to export."""

    def __init__(self, attend, causal):
        super().__init__()
        self.attend, self.causal = attend, causal

    def forward(self, q, k, v):
        """Attend."""
        return self.attend(q, k, v, causal=self.causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("attend", "strict"),
    [
        (attention, False),
        (fused_attention, False),
        (fused_attention, True),
        (ShawAttention(8, max_distance=2), False),
        (TransformerXLAttention(2, 8), False),
    ],
    ids=["attention", "fused", "strict", "Shaw", "Transformer-XL"],
)
def test_an_export_takes_as_many_queries_as_keys(attend, causal, strict):
    """It was exported for more or fewer of one than of the other alone, and
    said so in a guard's words: ``q.size()[2] != v.size()[2]``.
    """
    batch, n, n_k = (torch.export.Dim(x, min=2, max=64) for x in "bnk")
    keys = {0: batch, 2: n_k}
    q, k = torch.randn(3, 2, 5, 8), torch.randn(3, 2, 7, 8)
    graph = torch.export.export(
        Attending(attend, causal),
        (q, k, k),
        dynamic_shapes=({0: batch, 2: n}, keys, keys),
        strict=strict,
    ).module()
    for n_q, n_keys in ((3, 3), (9, 4), (4, 9)):
        q, k = torch.randn(2, 2, n_q, 8), torch.randn(2, 2, n_keys, 8)
        assert_close(graph(q, k, k), attend(q, k, k, causal=causal))


def test_an_exported_block_reads_what_is_as_long_as_it_writes():
    """Its cross-attention asks a memory of any length."""
    multihead = partial(MultiHeadAttention, attend=fused_attention)
    block = DecoderBlock(8, 2, 16, pre=True, multihead=multihead)
    n, n_k = (torch.export.Dim(x, min=2, max=64) for x in "nk")
    graph = torch.export.export(
        block,
        (torch.randn(2, 5, 8), torch.randn(2, 7, 8)),
        dynamic_shapes={"x": {1: n}, "memory": {1: n_k}},
    ).module()
    given = torch.randn(2, 2, 6, 8)
    assert_close(graph(*given), block(*given))


def test_an_exported_causal_layer_keeps_the_kernels_own_mask():
    """Where there are as many queries as keys for sure, no mask is made."""
    layer = MultiHeadAttention(8, 2, attend=fused_attention)
    n = torch.export.Dim("n", min=2, max=64)
    graph = torch.export.export(
        layer,
        (torch.randn(2, 5, 8),),
        {"causal": True},
        dynamic_shapes={"x": {1: n}, "causal": None},
    )
    assert "arange" not in graph.graph_module.code


# Products in kernels that tell none


@pytest.mark.parametrize(
    "make",
    [
        torch.linalg.matrix_exp,
        torch.linalg.pinv,
        lambda x: torch.linalg.householder_product(x, x[0]),
        lambda x: torch.ormqr(x, x[0], x),
    ],
    ids=["a power series", "an inverse", "reflections", "their product"],
)
def test_products_that_nobody_counts_are_not_none(make):
    """They were 0 operations."""
    with pytest.raises(ValueError, match="makes its own kernel"):
        flops(lambda: make(torch.eye(4)))


def test_factors_are_no_products():
    """To solve, to find roots and singular values stays uncounted."""
    x = torch.eye(4)
    for f in (torch.linalg.svd, torch.linalg.qr, torch.linalg.cholesky):
        assert flops(partial(f, x)) == 0
    assert flops(lambda: torch.linalg.matrix_power(x, 2)) == 2 * 4**3
    assert flops(lambda: torch.linalg.matrix_norm(x)) == 0


# Numbers that are made at every call


class Counted(nn.Module):
    """What makes a weight, and counts how often."""

    def __init__(self):
        super().__init__()
        self.times = 0

    def forward(self, weight):
        self.times += 1
        return weight


def test_a_table_that_is_made_at_every_call_is_made_once():
    """It was made once more, for a look at where it is: what it drew at
    random was drawn twice, and a power iteration took two steps.
    """
    embed = Embedding(11, 8, n_segments=2)
    for table in (embed.tokens, embed.segments):
        parametrize.register_parametrization(table, "weight", Counted())
    made = [
        table.parametrizations.weight[0]
        for table in (embed.tokens, embed.segments)
    ]
    before = [one.times for one in made]
    embed(torch.tensor([[1, 2]]), segments=torch.tensor([[0, 1]]))
    assert [one.times for one in made] == [n + 1 for n in before]


# A text that grows

BY_LENGTH = [
    (strided_attention, "stride"),
    (fixed_attention, "stride"),
    (lsh_attention, "n_buckets"),
]


def writer_of(attend):
    """A decoder of two blocks, with large numbers, and a text."""
    torch.manual_seed(0)
    layer = partial(MultiHeadAttention, attend=attend)
    blocks = [
        EncoderBlock(16, 2, 32, pre=True, multihead=layer) for _ in range(2)
    ]
    model = Decoder(Embedding(50, 16), blocks).double().eval()
    for p in model.parameters():
        p.data.normal_(0, 0.7)
    return model, torch.randint(50, (1, 13))


@pytest.mark.parametrize(("attend", "name"), BY_LENGTH)
def test_what_goes_by_the_length_of_a_text_is_bound_to_keep_it(attend, name):
    """The stride grew with the text, and what was kept was made by a smaller:
    logits were off by 26, and another text was written than without a cache.
    """
    for left_out in (attend, partial(attend), partial(attend, **{name: None})):
        model, text = writer_of(left_out)
        told = rf"{name} must be bound .* partial\({attend.__name__}, {name}="
        with pytest.raises(ValueError, match=told):
            complete(model.step, text, 2)
        assert complete(model.step, text, 2, cached=False).shape == (1, 15)
        assert complete(model.step, text, 1).shape == (1, 14)


@pytest.mark.parametrize(("attend", "name"), BY_LENGTH)
def test_what_is_bound_writes_with_a_cache_what_it_writes_without(
    attend, name
):
    model, text = writer_of(partial(attend, **{name: 4}))
    _, cache = model.step(text[:, :3])
    for i in range(3, 13):
        logits, cache = model.step(text[:, i : i + 1], cache)
        assert_close(logits, model(text[:, : i + 1])[:, -1])


def by_its_own_length(q, k, v, **options):
    """Somebody's, which knows by itself how long a text will be."""
    return strided_attention(q, k, v, stride=4, **options)


def test_somebodys_own_mechanism_is_asked_for_nothing():
    model, text = writer_of(
        functools.wraps(strided_attention)(by_its_own_length)
    )
    kept = complete(model.step, text, 5)
    assert kept.equal(complete(model.step, text, 5, cached=False))
