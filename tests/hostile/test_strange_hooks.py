"""What strangers found of hooks that hang in a model, of what is copied with
it, and of what others write into.

As in `test_strangers`, each is a single story.
"""

import copy
import io
import math
import pickle
import threading
from functools import partial

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.modules import module as of_all
from torch.nn.modules.module import register_module_forward_hook
from torch.testing import assert_close

from hostile.replicas import replica
from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.cost import (
    allocated_bytes,
    largest_bytes,
    most_held,
    peak_bytes,
)
from selfattn.devices.heads import tensor_parallel
from selfattn.devices.ulysses import ulysses_attention
from selfattn.devices.world import on_ranks
from selfattn.dot_product import attention, attention_weights
from selfattn.looking_inside import spread
from selfattn.masks import block_mask, causal_mask
from selfattn.models import (
    Decoder,
    Embedding,
    Encoder,
    EncoderDecoder,
    LabelHead,
    beam_search,
    complete,
)
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import AdditiveAttention, Translator
from selfattn.positions import alibi_bias, sinusoidal
from selfattn.single_heads import (
    change_heads,
    record_heads,
    record_weights,
)
from selfattn.spoilt import projected


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


def gradients(layer, total):
    return torch.autograd.grad(total, [*layer.parameters()])


def hooks_of(model):
    """All that hang in a model, or for all modules there are."""
    kinds = "_forward_pre_hooks", "_forward_hooks"
    hung = [getattr(part, kind) for part in model.modules() for kind in kinds]
    return [*hung, *(getattr(of_all, f"_global{kind}") for kind in kinds)]


# Heads that are changed to what is no number


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("recorded", ["outside", "inside"])
def test_the_patch_of_another_text_is_not_felt(bad, recorded):
    """W_o is called again without that text, and the hook put it back."""
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 2), torch.randn(2, 3, 8)
    sound, found = torch.randn(2, 3, 4), []
    spoilt = sound.clone()
    spoilt[1] = bad
    for patch in (spoilt, sound):
        ways = [partial(change_heads, layer, {"1.1": patch})]
        ways.insert(recorded == "inside", partial(record_heads, layer))
        with ways[0]() as outer, ways[1]() as inner:
            made = layer(x)
        told = (outer or inner)["1.1"]
        as_patched = torch.allclose(told, patch, equal_nan=True)
        assert as_patched == (recorded == "inside")
        assert made[1].isfinite().any() == (patch is sound)
        found.append(gradients(layer, made[0].square().sum()))
    assert_close(*found)


def of_patches(rank, n_ranks):
    """How far gradients of heads that are dealt out, one of them patched, are
    from those of the whole layer.
    """
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 2), torch.randn(2, 3, 8)
    part = tensor_parallel(layer, init_device_mesh("cpu", (n_ranks,)))
    patch = torch.randn(2, 3, 4)
    patch[1] = torch.nan
    found = []
    for model, head in ((layer, "1.1"), (part, "1.1" if rank == 0 else None)):
        instead = {} if head is None else {head: patch}
        with change_heads(model, instead):
            model(x)[0].square().sum().backward()
        grads = (p.grad for p in model.parameters())
        found.append([getattr(g, "full_tensor", g.clone)() for g in grads])
    return [(a - b).abs().max().item() for a, b in zip(*found, strict=True)]


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_patch_is_not_felt_by_heads_that_are_dealt_out(ranks):
    for errors in on_ranks(of_patches, ranks):
        assert all(error < 1e-5 for error in errors)


def test_what_a_patch_mends_is_felt():
    """Of two texts that are spoilt, one is patched, and learnt from."""
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 2), torch.randn(2, 3, 8)
    patches, found = {"1.1": torch.ones(3, 4), "1.2": torch.randn(3, 4)}, []
    for first, second in ((torch.nan, torch.nan), (0.0, 0.0)):
        x[0], patch = first, patches["1.2"].expand(2, 3, 4).clone()
        patch[1] += second
        with change_heads(layer, patches | {"1.2": patch}):
            made = layer(x)
        [of_w_o] = torch.autograd.grad(made[0].sum(), layer.W_o.weight)
        found.append(of_w_o)
    assert of_w_o.any()
    assert_close(*found)


def test_what_somebodys_hook_spoils_is_not_felt():
    """No more than a patch is."""
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 2), torch.randn(2, 3, 8)
    wanted = gradients(layer, layer(x)[0].sum())

    def spoil(_, given):
        spoilt = torch.full_like(given[0][1:], torch.nan)
        return torch.cat([given[0][:1], spoilt])

    for projection in (layer.W_q, layer.W_o):
        hook = projection.register_forward_pre_hook(spoil)
        assert_close(gradients(layer, layer(x)[0].sum()), wanted)
        hook.remove()
    assert not any(hooks_of(layer))


def test_what_somebodys_hook_mends_is_felt():
    """As it was mended, though another token is spoilt."""
    head, x = LabelHead(8, 3), torch.randn(2, 3, 8)
    x[0, 0], x[1, 1] = 1.0, torch.inf
    wanted = gradients(head, head(x)[0].sum())
    x[0, 0] = torch.nan

    def mend(_, given):
        return given[0].nan_to_num(1.0, torch.inf)

    head.labels.register_forward_pre_hook(mend)
    assert_close(gradients(head, head(x)[0].sum()), wanted)


# Heads that are looked at while something else is done


WAYS = {
    "weights": record_weights,
    "heads": record_heads,
    "changes": partial(change_heads, instead={"1.1": 0.0}),
}


def saved(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize(
    "way", [copy.deepcopy, saved, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("how", WAYS)
def test_a_copy_that_is_made_meanwhile_is_of_the_model_alone(how, way):
    """It had the hooks, and was recorded, too; or could not be pickled."""
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    wanted = layer(x)
    with WAYS[how](layer) as recorded:
        other = way(layer)
        assert torch.equal(other(x), wanted)
        assert not recorded
        layer(x)
        assert recorded or how == "changes"
    assert not any(hooks_of(other)) and not any(hooks_of(layer))


@pytest.mark.parametrize("how", WAYS)
def test_a_layer_that_ends_as_looking_does_is_left_alone(how):
    """As another thread's may: it had gathered which hooks to call, but not
    yet asked which of them are told what was given by name.
    """
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    wanted = layer(x)
    looking = []

    def end(*_):
        if looking:
            looking.pop().__exit__(None, None, None)

    with register_module_forward_hook(end):
        looking.append(WAYS[how](MultiHeadAttention(8, 2)))
        recorded = looking[-1].__enter__()
        assert torch.equal(layer(x), wanted)
    assert not recorded and not looking


def test_two_threads_may_share_a_layer_with_hooks():
    """One set aside what was spoilt for it, and the other lost its own."""
    layer, x, other = nn.Linear(4, 4), torch.randn(2, 3, 4), torch.randn(5, 4)
    x[0, 1], other[2] = math.nan, math.inf
    wanted = layer(other)
    asked, got = [], []

    def meanwhile(_, given):
        asked.append(given)
        if len(asked) == 2:  # now that of the tokens the sound ones are asked
            thread = threading.Thread(target=lambda: got.append(layer(other)))
            thread.start()
            thread.join()

    layer.register_forward_pre_hook(meanwhile)
    projected(layer, x)
    assert_close(got, [wanted], equal_nan=True)


def test_replicas_are_changed_as_the_model_is():
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    with change_heads(layer, {"1.1": 0.0, "1.2": 0.0}):
        assert not replica(layer)(x).any()


def two_with_one_matrix():
    one, other = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2)
    other.W_o = one.W_o
    return nn.ModuleList([one, other])


def test_layers_that_share_a_matrix_are_told_apart():
    """A head of one was switched off in the other, and recorded there."""
    model, x = two_with_one_matrix(), torch.randn(1, 3, 8)
    one, other = model
    wanted = other(x), model[0].W_o(x)
    with change_heads(model, {"1.1": 0.0, "1.2": 0.0}):
        assert not one(x).any()
        assert torch.equal(other(x), wanted[0])
        assert torch.equal(one.W_o(x), wanted[1])  # nobody's heads
    with record_heads(model) as heads:
        one(x)
    assert [*heads] == ["1.1", "1.2"]


class Twofold(nn.Module):
    """A mechanism that has a layer of its own."""

    def __init__(self):
        super().__init__()
        self.inner = MultiHeadAttention(4, 2)

    def forward(self, q, k, v, *, mask=None, bias=None, causal=False):
        return self.inner(v.flatten(0, 1)).view_as(v)


@pytest.mark.parametrize("layer", ["1", "2"])
def test_a_layer_within_a_layer_has_heads_of_its_own(layer):
    model = MultiHeadAttention(8, 2, attend=Twofold())
    with change_heads(model, {f"{layer}.1": 0.0, f"{layer}.2": 0.0}):
        assert not model(torch.randn(1, 3, 8)).any()


def test_a_layer_that_raises_is_no_longer_at_work():
    """What its matrix is given next is not taken for its heads."""
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    with record_heads(layer) as heads:
        with pytest.raises(ValueError, match="mask must"):
            layer(x, mask=torch.ones(7, 7, dtype=torch.bool))
        layer.W_o(x)
    assert not heads


def test_a_matrix_that_is_set_meanwhile_is_looked_at():
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    with change_heads(layer, {"1.1": 0.0, "1.2": 0.0}):
        layer.W_o = nn.Linear(8, 8, bias=False)
        assert not layer(x).any()


# Hooks that hang in what is copied


def passes(module, given, made=None):
    return None


HOOKS = {
    "forward": lambda part: part.register_forward_hook(passes),
    "before": lambda part: part.register_forward_pre_hook(passes),
    "backward": lambda part: part.register_full_backward_hook(passes),
    "weight": lambda part: next(part.parameters()).register_hook(torch.abs),
    "kept": lambda part: next(
        part.parameters()
    ).register_post_accumulate_grad_hook(lambda x: None),
}


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("within", [False, True])
def test_a_layer_with_hooks_is_not_copied_without_them(name, within):
    """They were dropped, and nothing said."""
    theirs, ours = nn.MultiheadAttention(8, 2), MultiHeadAttention(8, 2)
    for part, copied in (
        (theirs.out_proj if within else theirs, theirs),
        (ours.W_v if within else ours, ours),
    ):
        hook = HOOKS[name](part)
        way = MultiHeadAttention.from_torch
        way = way if copied is theirs else MultiHeadAttention.to_torch
        with pytest.raises(ValueError, match=r"hooks are not copied .*_hooks"):
            way(copied)
        hook.remove()
        assert way(copied)


def test_a_layer_with_hooks_of_its_state_dict_is_copied():
    """Weights that are computed have them, and were refused for it."""
    theirs, ours = nn.MultiheadAttention(8, 2), MultiHeadAttention(8, 2)
    for part in (theirs, ours.W_v):
        part.register_state_dict_post_hook(lambda *given: None)
    assert MultiHeadAttention.from_torch(theirs) and ours.to_torch()


# What a mechanism writes into


class Writes:
    """A mechanism that writes over all that it is given."""

    def __call__(self, q, k, v, *, mask=None, bias=None, causal=False):
        made = attention(q, k, v, mask=mask, bias=bias, causal=causal)
        self.weights(q, k, mask=mask, bias=bias)
        v.zero_()
        return made

    def weights(self, q, k, *, mask=None, bias=None, causal=False):
        made = attention_weights(q, k, mask=mask, bias=bias, causal=causal)
        for x in (q, k, bias, mask):
            if x is not None:
                x.zero_()
        return made


def layer_that_writes():
    torch.manual_seed(0)
    layer = MultiHeadAttention(8, 2, attend=Writes())
    like = MultiHeadAttention(8, 2)
    like.load_state_dict(layer.state_dict())
    return layer, like


@pytest.mark.parametrize("ask", ["forward", "weights"])
@torch.no_grad()
def test_a_mechanism_may_write_into_what_it_is_given(ask):
    """Into the caller's cache, mask and bias, which were then others."""
    layer, like = layer_that_writes()
    x = torch.randn(1, 3, 8)
    tables = {"mask": causal_mask(3, 3), "bias": torch.randn(3, 3)}
    kept = layer.keys_values(x)
    given = [*kept, *tables.values()]
    before = [one.clone() for one in given]
    for _ in range(2):
        found = getattr(layer, ask)(x, kept, **tables)
        assert torch.equal(found, getattr(like, ask)(x, kept, **tables))
    assert all(map(torch.equal, given, before))


@torch.no_grad()
def test_a_cache_of_a_model_is_not_written_into():
    """Nor is a bias that all blocks share; two blocks heard of both."""
    tokens, found = torch.tensor([[3, 1, 4, 1]]), []
    for attend in (Writes(), attention):
        torch.manual_seed(0)
        bound = partial(MultiHeadAttention, attend=attend)
        make = partial(EncoderBlock, pre=True, multihead=bound)
        blocks = [make(8, 2, 16) for _ in range(2)]
        relative = partial(alibi_bias, 2)
        model = Decoder(Embedding(11, 8), blocks, relative=relative)
        _, cache = model.step(tokens)
        found.append([model.step(tokens, cache)[0] for _ in range(2)])
        found[-1].append(model(tokens))
    assert_close(*found, rtol=0, atol=0)


STEPS = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize(
    "search", [complete, lambda *a, **o: beam_search(*a, n_beams=3, **o)[0]]
)
def test_a_step_may_write_over_the_text_so_far(search, cached):
    """It was the text itself, or a view of it, but for the first time."""
    prompt = torch.tensor([[1, 2], [0, 4]])

    def step(tokens, cache):
        return STEPS[tokens[:, -1]], None

    def writes(tokens, cache):
        answer = step(tokens, cache)
        tokens.zero_()
        return answer

    found = search(writes, prompt, 4, cached=cached)
    assert torch.equal(found, search(step, prompt, 4, cached=cached))


class Zeroes(nn.Module):
    """A table, or an embedding, that writes over its tokens."""

    def __init__(self, table):
        super().__init__()
        self.table = table
        self.weight = getattr(table, "weight", None)

    def forward(self, tokens, **options):
        made = self.table(tokens.clone(), **options)
        tokens.zero_()
        return made


@pytest.mark.parametrize("part", ["embed", "tokens", "segments"])
def test_an_embedding_may_write_over_its_tokens(part):
    """Those of the caller were others then."""
    embed = Embedding(11, 8, n_segments=11)
    block = EncoderBlock(8, 2, 16, pre=True)
    writer = DecoderBlock(8, 2, 16, pre=True)
    tokens = torch.tensor([[3, 1, 4]])
    decoder = Decoder(embed, [block])
    both = EncoderDecoder(Encoder(embed, [block]), embed, [writer])
    if part == "embed":
        for model in (decoder, both, both.encoder):
            model.embed = Zeroes(embed)
    else:
        setattr(embed, part, Zeroes(getattr(embed, part)))
    decoder(tokens)
    decoder.step(tokens)
    memory = both.read(tokens)
    both(tokens, tokens)
    both.step(tokens, memory=memory)
    embed(torch.tensor([[0, 1, 2]]), segments=tokens)
    assert tokens.tolist() == [[3, 1, 4]]


@torch.no_grad()
def test_a_source_that_was_read_is_not_written_into():
    """A translator's attention wrote into the states of its memory."""
    attend, source = AdditiveAttention(8, 8, 5), torch.tensor([[3, 1, 4]])
    model = Translator(11, 11, 8, attend=attend)
    memory = model.read(source)
    wanted = model.step(source, memory=memory)[0]
    look = model.alignment(source, source)

    class Overwrites(nn.Module):
        def forward(self, q, k, v, *, mask=None):
            made = attend(q, k.clone(), v.clone(), mask=mask)
            v.zero_()
            return made

        def weights(self, q, k, *, mask=None):
            made = attend.weights(q, k.clone(), mask=mask)
            k.zero_()
            return made

    model.attend = Overwrites()
    for _ in range(2):
        assert torch.equal(model.step(source, memory=memory)[0], wanted)
    assert torch.equal(model.alignment(source, source), look)


def ulysses_writes(rank, n_ranks):
    """Whether what is given is as it was."""
    q, k, v = torch.randn(3, 2, 4, 5)
    tables = {"mask": torch.ones(1, 4, dtype=torch.bool)}
    tables["bias"] = torch.randn(2, 1, 4)
    given = [q, k, v, *tables.values()]
    before = [one.clone() for one in given]
    ulysses_attention(q, k, v, attend=Writes(), **tables)
    return all(map(torch.equal, given, before))


def test_ranks_keep_what_a_mechanism_writes_into():
    assert on_ranks(ulysses_writes, 1) == [True]


# Devices


DEVICED = {
    "causal_mask": lambda device: causal_mask(2, 3, device=device),
    "block_mask": lambda device: block_mask(2, 3, 2, device=device),
    "alibi_bias": lambda device: alibi_bias(2, 2, 3, device=device),
    "sinusoidal": lambda device: sinusoidal(2, 3, device=device),
}
NOWHERE = [
    "nowhere",
    "",
    "cpu:-1",
    "privateuseone",
    "hpu",
    torch.device("xla"),
]


@pytest.mark.parametrize("device", NOWHERE)
@pytest.mark.parametrize("name", DEVICED)
def test_a_device_that_is_not_here_is_named(name, device):
    """PyTorch listed all it knows, asserted, or lacked a module."""
    with pytest.raises(ValueError, match=r"^device must be a device that Py"):
        DEVICED[name](device)


@pytest.mark.parametrize("device", ["cpu", "meta", "cpu:0", None])
@pytest.mark.parametrize("name", DEVICED)
def test_a_device_that_is_here_is_taken(name, device):
    made = DEVICED[name](device)
    assert made.device.type == (device or "cpu").partition(":")[0]
    assert DEVICED[name](made.device).device == made.device


def test_a_device_is_not_tried_in_what_is_compiled():
    """Each call of the compiled would make an empty tensor, for nothing."""
    torch._dynamo.reset()
    calls = []

    def noting(graph, example):
        calls.extend(node.target for node in graph.graph.nodes)
        return graph

    def mask():
        return causal_mask(2, 3, device="cpu:0")

    made = torch.compile(mask, backend=noting, fullgraph=True)()
    assert torch.equal(made, mask())
    assert torch.empty not in calls


@pytest.mark.parametrize("device", [5, torch.float32, b"cpu"])
def test_what_is_no_device_is_of_another_type(device):
    with pytest.raises(TypeError, match=r"^device must be a device that Py"):
        causal_mask(2, 2, device=device)


# Blocks


NO_LIST = [torch.ones(0, 3), torch.tensor(1.0), "", {}, set(), b""]
NO_LIST += [nn.ModuleDict(), torch.ones(2, 3), {EncoderBlock: 1}]


@pytest.mark.parametrize("blocks", NO_LIST, ids=range(len(NO_LIST)))
@pytest.mark.parametrize("model", [Encoder, Decoder])
def test_blocks_that_are_no_list_of_modules_are_named(model, blocks):
    """An empty text or tensor made a model without blocks."""
    with pytest.raises(TypeError, match=r"^blocks must be modules, one after"):
        model(Embedding(11, 8), blocks)


# Bytes of what is copied


@pytest.mark.parametrize(
    ("f", "held", "most"),
    [
        (copy.deepcopy, 44, 40),
        (lambda x: copy.deepcopy(x[:5]), 44, 40),
        (lambda x: copy.deepcopy(torch.zeros(10)), 84, 40),
        (lambda x: copy.deepcopy(nn.Linear(4, 4)), 160, 64),
        (lambda x: torch.empty(0).set_(x.untyped_storage()), 0, 0),
        (lambda x: x.untyped_storage().clone(), 40, 40),
        (lambda x: pickle.loads(pickle.dumps(x)), 40, 40),
    ],
    ids=["copy", "view", "own", "module", "shared", "storage", "pickle"],
)
def test_bytes_of_a_copy_are_counted_once(f, held, most):
    """What was copied counted, too, though it was there before."""
    run = partial(f, torch.zeros(10))
    assert peak_bytes(run) == allocated_bytes(run) == held
    assert largest_bytes(run) == most
    with torch.inference_mode():
        assert peak_bytes(run) == held


@pytest.mark.parametrize("count", [peak_bytes, allocated_bytes])
def test_what_raises_is_heard_and_nothing_stays(count):
    def f():
        torch.zeros(1000)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        count(f)
    assert count(lambda: torch.zeros(10)) == 40


@pytest.mark.parametrize("changes", [torch.tensor(1), torch.ones(2, 2)])
def test_a_tensor_is_no_list_of_changes(changes):
    """Of one number PyTorch said that it cannot be gone through."""
    with pytest.raises(TypeError, match=r"^changes must be pairs"):
        most_held(changes)


@pytest.mark.parametrize("places", [("cpu", "meta"), ("meta", "cpu")])
def test_a_spread_is_asked_of_one_device(places):
    weights, mask = (torch.ones(2, 2, device=place) / 2 for place in places)
    with pytest.raises(ValueError, match=r"^mask must be where weights is"):
        spread(weights, mask > 0)


# Within vmap


def rows_of(layer, x, *by):
    """What is recorded of a layer that runs on each text of x."""
    model = layer
    for transform in by:
        model = transform(model)
    with record_weights(layer) as weights, record_heads(layer) as heads:
        model(x)
    return weights[0], heads["1.2"]


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize(
    ("order", "axes"),
    [((0, 1, 2), (0,)), ((1, 0, 2), (1,)), ((2, 3, 0, 1, 4), (0, 2, 2))],
)
def test_what_is_recorded_within_vmap_can_be_used_outside(learns, order, axes):
    """It was of the transform: every use of it was PyTorch's error."""
    layer, n = MultiHeadAttention(8, 2), len(axes)
    x = torch.randn(*(3, 2, 5)[:n], 4, 8)
    by = [lambda f: lambda x: f(x[None])]
    by += [lambda f: torch.func.grad(lambda x: f(x).sum())] if learns else []
    by += [partial(torch.func.vmap, in_dims=axis) for axis in axes]
    mapped = rows_of(layer, x.permute(order), *by)
    wanted = rows_of(layer, x.flatten(0, n - 1))
    for found, right in zip(mapped, wanted, strict=True):
        assert_close(found.squeeze(n).flatten(0, n - 1), right)


def test_who_records_within_vmap_goes_on_within_it():
    """Beside what can be used outside, this has to stay."""
    layer, x = MultiHeadAttention(8, 2), torch.randn(3, 5, 8)

    def within(x):
        return rows_of(layer, x[None])

    found = torch.func.vmap(within)(x)
    for mapped, wanted in zip(found, rows_of(layer, x), strict=True):
        assert_close(mapped.squeeze(1), wanted)


def test_what_is_put_in_a_heads_place_may_be_mapped():
    """It was written into what the head brought, which was not."""
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 5, 8)
    values = torch.randn(3, 1, 5, 4)

    def patched(value):
        with change_heads(layer, {"1.1": value}):
            return layer(x)

    found = torch.func.vmap(patched)(values)
    assert_close(found, torch.stack([patched(value) for value in values]))
    slopes = torch.func.vmap(torch.func.grad(lambda v: patched(v).sum()))
    assert slopes(values).any()
