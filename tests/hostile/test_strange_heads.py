"""What strangers found of what stands on a model, and of tables that are one.

As in `test_strangers`, each is a single story.
"""

import copy
import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.utils.parametrize import register_parametrization
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.devices.heads import tensor_parallel
from selfattn.devices.world import on_ranks
from selfattn.dot_product import attention
from selfattn.efficient.linear import linear_attention
from selfattn.efficient.linformer import LearnedProjection, LinformerAttention
from selfattn.masks import padding_mask
from selfattn.models import (
    Bert,
    ClassHead,
    Decoder,
    Embedding,
    Encoder,
    EncoderDecoder,
    LabelHead,
    PatchEmbedding,
    Pooler,
    SpanHead,
    VisionTransformer,
    WordHead,
)
from selfattn.multihead import MultiHeadAttention
from selfattn.single_heads import change_heads

IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])  # no token is in both texts


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


def block(kind=EncoderBlock):
    return kind(8, 2, 16, pre=True)


def decoder(**options):
    return Decoder(Embedding(11, 8), [block()], **options)


def both(**options):
    """One that reads and writes, with one table for all."""
    embed = Embedding(11, 8)
    encoder = Encoder(embed, [block()])
    return EncoderDecoder(encoder, embed, [block(DecoderBlock)], **options)


def vision():
    embed = PatchEmbedding((4, 4), (2, 2), n_channels=1, d_model=8)
    return VisionTransformer(embed, [block()], 3)


def gradients(model, total):
    parameters = [p for p in model.parameters() if p.requires_grad]
    return torch.autograd.grad(total, parameters, allow_unused=True)


# What is hidden in what a head is given


SEEN = {
    "SpanHead": (lambda: SpanHead(8), lambda h, x: sum(h(x))[:, 0].sum()),
    "LabelHead": (lambda: LabelHead(8, 3), lambda h, x: h(x)[:, 0].sum()),
    "WordHead": (
        lambda: WordHead(Embedding(11, 8)),
        lambda h, x: h(x)[:, 0].square().sum(),
    ),
    "Pooler": (lambda: Pooler(8), lambda h, x: h(x)[0].sum()),
    "ClassHead": (lambda: ClassHead(8, 3), lambda h, x: h(x)[0].sum()),
}


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("name", SEEN)
def test_a_token_that_nobody_asks_for_is_not_felt_by_a_head(name, bad):
    """Of the padding, or of another text: 0 · NaN came into each weight."""
    make, total = SEEN[name]
    torch.manual_seed(0)
    head, x = make(), torch.randn(2, 5, 8)
    hidden = (1, slice(None)) if name in ("Pooler", "ClassHead") else (0, 4)
    spoilt = x.clone()
    spoilt[hidden] = bad
    x[hidden] = 0.0
    found = gradients(head, total(head, spoilt))
    assert_close(found, gradients(head, total(head, x)))


def test_labels_of_the_padding_are_ignored_on_the_way_back_too():
    """The loss was finite, the encoder's gradients were, the head's not."""
    encoder, head = Encoder(nn.Identity(), [block()]), LabelHead(8, 3)
    x, labels = torch.randn(2, 5, 8), torch.zeros(2, 5).long()
    x[0, 3:], labels[0, 3:] = math.nan, -100
    mask = padding_mask(torch.tensor([3, 5]), 5)
    logits = head(encoder(x, mask=mask))
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    for one in gradients(nn.ModuleList([encoder, head]), loss):
        assert one.isfinite().all()


@pytest.mark.parametrize("model", [decoder, both])
def test_another_text_is_not_felt_by_scores_of_their_own(model):
    """Only the head's weight was NaN, all others were right."""
    made = model(tied=False)
    with torch.no_grad():
        made.embed.tokens.weight[4] = math.nan
    given = (IDS,) * (2 if model is both else 1)
    for one in gradients(made, made(*given)[0].sum()):
        assert one.isfinite().all()
    if model is both:
        step = made.step(IDS, memory=made.read(IDS))[0]
    else:
        step = made.step(IDS)[0]
    assert gradients(made, step[0].sum())[-1].isfinite().all()


def test_another_image_is_not_felt():
    """Neither by what embeds its patches nor by what tells its class."""
    model, images = vision(), torch.randn(2, 1, 4, 4)
    images[1, 0, 0, 0] = math.nan
    for one in gradients(model, model(images)[0].sum()):
        assert one.isfinite().all()


# A table that is two, or three


def bert():
    embed = Embedding(11, 8)
    return Bert(Encoder(embed, [block()]), words=WordHead(embed))


def shared():
    """Two that write with one embedding."""
    embed = Embedding(11, 8)
    return nn.ModuleList([Decoder(embed, [block()]) for _ in range(2)])


def assigned(model):
    numbers = {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(numbers, assign=True)


def emptied(model):
    model.to("meta").to_empty(device="cpu")


def overwritten(model):
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        model.double()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)


def swapped(model):
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model.double()
        assigned(model)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def twice(model):
    """With one function both times, as PyTorch's own is not."""

    def overwrite(x):
        return torch.empty_like(x, device="meta")

    for device in ("cpu", "meta"):
        model._apply(overwrite)
        model.to_empty(device=device)


def said_to_be_nan(model):
    with torch.no_grad():
        next(model.parameters())[5] = math.nan
    assigned(model)


WAYS = [assigned, emptied, overwritten, swapped, twice, said_to_be_nan]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [bert, shared, decoder, both])
@pytest.mark.parametrize("within", [False, True])
def test_a_table_stays_one_whatever_scores_with_it(make, way, within):
    """After one step of training, two tables were parted."""
    model = make()
    way(nn.Sequential(model) if within else model)
    for one in model if make is shared else [model]:
        assert one.is_one()
        way(copy.deepcopy(one))
    if make is shared:
        assert model[0].embed is model[1].embed


@pytest.mark.parametrize("left", ["head.weight", "embed.tokens.weight"])
def test_a_table_that_is_written_once_is_loaded_twice(left):
    """As safetensors writes a model: the old head was beside the new table."""
    model = decoder()
    numbers = {k: v + 1 for k, v in model.state_dict().items() if k != left}
    model.load_state_dict(numbers, assign=True, strict=False)
    [given] = {"head.weight", "embed.tokens.weight"} - {left}
    assert model.is_one() and torch.equal(model.head.weight, numbers[given])


def test_a_table_is_one_where_there_are_no_numbers():
    """There are none to be compared: PyTorch said it had no such operator."""
    with torch.device("meta"):
        model, numbers = decoder(), decoder().state_dict()
    model.load_state_dict(numbers, assign=True)
    assert model.is_one()


def test_one_of_two_that_shared_may_get_other_numbers():
    """The other one keeps the table; nobody's numbers are lost."""
    model = shared()
    numbers = {k: v.clone() for k, v in model.state_dict().items()}
    numbers["0.head.weight"] += 1
    model.load_state_dict(numbers, assign=True)
    assert [one.is_one() for one in model] == [False, True]
    assert torch.equal(model[0].head.weight, numbers["0.head.weight"])


class Wrapped(nn.Module):
    """An adapter round the table."""

    def __init__(self, tokens):
        super().__init__()
        self.base = tokens
        self.num_embeddings = tokens.num_embeddings

    def forward(self, x):
        return self.base(x)


@pytest.mark.parametrize(
    "head",
    [nn.Identity(), nn.Sequential(nn.Linear(8, 3)), None, "wrapped"],
    ids=["identity", "sequential", "none", "wrapped"],
)
@pytest.mark.parametrize("make", [decoder, both])
def test_a_model_with_another_head_moves_and_loads(make, head):
    """It had no weight: an AttributeError, even when one moved it."""
    model = make()
    if head == "wrapped":
        model.embed.tokens = Wrapped(model.embed.tokens)
    else:
        model.head = head
    model.double().load_state_dict(model.state_dict(), assign=True)
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    assert not model.is_one()


# Heads that are dealt out


def of_padding(rank, n_ranks):
    """How far a layer that is dealt out is from the whole one, with NaN in
    the padding: its output, and the gradients of x and of each matrix.
    """
    torch.manual_seed(0)
    layer = MultiHeadAttention(8, 4, projection_bias=True)
    x = torch.randn(2, 5, 8)
    x[0, 3:] = math.nan
    mask = padding_mask(torch.tensor([3, 5]), 5)
    mesh = init_device_mesh("cpu", (n_ranks,))
    found = []
    for one in (layer, tensor_parallel(layer, mesh)):
        given = x.clone().requires_grad_()
        made = one(given, mask=mask)
        seen = made[0, :3].square().sum() + made[1].square().sum()
        seen.backward()
        grads = [whole(p.grad) for p in one.parameters()]
        found.append([seen.detach() * 1, whole(given.grad), *grads])
    return [(a - b).abs().max().item() for a, b in zip(*found, strict=True)]


def whole(x):
    return x.full_tensor() if hasattr(x, "full_tensor") else x * 1


@pytest.mark.parametrize("ranks", [1, 2])
def test_padding_is_not_felt_by_heads_that_are_dealt_out(ranks):
    """PyTorch spoke of mixed tensors, while training alone."""
    for errors in on_ranks(of_padding, ranks):
        assert max(errors) < 1e-5 and not any(e != e for e in errors)


def of_one_rank(rank, n_ranks):
    """Of one rank's heads a query overflows: all are to go on alike."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(8, 4)
    with torch.no_grad():
        layer.W_q.weight[0] = 3e38
    layer = tensor_parallel(layer, init_device_mesh("cpu", (n_ranks,)))
    x = torch.full((1, 5, 8), 0.1)
    x[0, 4] = 9.0
    x.requires_grad_()
    made = layer(x, causal=True)
    made[0, :2].sum().backward()
    return tuple(x.grad.shape)


def test_ranks_go_back_alike_whatever_their_own_heads_made():
    """One would have waited for a sum that the other never asks for."""
    assert on_ranks(of_one_rank, 2) == [(1, 5, 8)] * 2


@pytest.mark.parametrize("where", ["head", "embed.tokens"])
def test_a_parametrisation_that_changes_nothing_changes_nothing(where):
    """It gives back the table itself, which no longer had its own place."""
    model = Decoder(Embedding(11, 8), [EncoderBlock(8, 2, 16, pre=True)])
    part, tokens = model.get_submodule(where), torch.tensor([[3, 1, 4]])
    wanted = model(tokens).double()
    register_parametrization(part, "weight", nn.Identity())
    model.load_state_dict(model.state_dict())
    assert_close(model.double()(tokens), wanted, atol=1e-6, rtol=0.0)


def test_what_a_dealt_mechanism_learns_is_trained_beside_the_matrices():
    """All parameters were said to be DTensors; where one list held both
    kinds, clipping and steps ended in PyTorch's own words.
    """
    attend = LinformerAttention(LearnedProjection(9, 3))

    def apart(rank, n_ranks):
        from torch.distributed.tensor import DTensor

        mesh = init_device_mesh("cpu", (n_ranks,))
        layer = tensor_parallel(MultiHeadAttention(12, 4, attend=attend), mesh)
        sorts: list[list] = [[], []]
        for parameter in layer.parameters():
            sorts[isinstance(parameter, DTensor)].append(parameter)
        groups = [{"params": sort} for sort in sorts]
        optimiser = torch.optim.AdamW(groups, lr=0.1, foreach=True)
        layer(torch.ones(2, 7, 12)).sum().backward()
        for sort in sorts:
            torch.nn.utils.clip_grad_norm_(sort, 1.0)
        (own,) = sorts[0]
        before = own.detach().clone()
        optimiser.step()
        return len(sorts[1]), bool((own != before).any()), own.detach()

    torch.manual_seed(0)
    first, second = on_ranks(apart, 2, timeout=40.0)
    assert first[:2] == second[:2] == (4, True)
    assert_close(first[2], second[2])


@pytest.mark.parametrize("seed", [7, 11])
def test_a_token_that_is_large_on_one_rank_alone_has_all_go_alike(seed):
    """That rank called W_o once more than the others, and all waited for it
    until the group gave up.
    """

    def learns(rank, n_ranks):
        torch.manual_seed(seed)
        mesh = init_device_mesh("cpu", (n_ranks,))
        layer = MultiHeadAttention(8, 4, attend=linear_attention)
        x = torch.randn(2, 5, 8)
        x[0, 2] = 3e38
        x.requires_grad_()
        tensor_parallel(layer, mesh)(x).sum().backward()
        return x.grad[1]

    first, second = on_ranks(learns, 2, timeout=20.0)
    assert_close(first, second)


def test_a_projection_that_overflows_is_left_out_by_all_ranks():
    """In a dealt layer its gradient reached sound tokens, as NaN or wrong."""

    def learns(rank, n_ranks):
        mesh = init_device_mesh("cpu", (n_ranks,))
        pairs = []
        for seed, causal in ((1, True), (16, True), (24, False), (31, False)):
            torch.manual_seed(seed)
            layer = MultiHeadAttention(8, 4, attend=attention)
            x, g = torch.randn(2, 5, 8), torch.randn(2, 5, 8)
            x[0, 3] = 3e38
            whole = layer(x, causal=causal).isfinite().all(-1, keepdim=True)
            g = g.masked_fill(~whole, 0)
            pairs.append([])
            for one in (layer, tensor_parallel(layer, mesh)):
                own = x.clone().requires_grad_()
                one(own, causal=causal).backward(g)
                pairs[-1].append(own.grad)
        return pairs

    for pair in on_ranks(learns, 2, timeout=40.0)[0]:
        assert_close(*pair)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpointed_layer_goes_back_with_the_heads_as_they_are_then(
    reentrant,
):
    """Computed again behind the ``with``, it was computed with all heads: of
    another answer than the one that had come out, in silence or not.
    """
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(1, 3, 8, requires_grad=True)
    again = partial(checkpoint, layer, use_reentrant=reentrant)
    found = []
    with change_heads(layer, {"1.1": 0.0}):
        for run in (layer, again):
            x.grad = None
            run(x).square().sum().backward()
            found.append(x.grad)
    assert_close(*found)


def test_what_is_made_of_a_table_is_the_embedding_s_alone():
    """A model's head does not score with a table that is parametrised."""

    class Twice(nn.Module):
        def forward(self, weight):
            return 2 * weight

    model = Decoder(Embedding(11, 8), [EncoderBlock(8, 2, 16, pre=True)])
    register_parametrization(model.embed.tokens, "weight", Twice())
    assert_close(2 * model.head.weight, model.embed.tokens.weight)
