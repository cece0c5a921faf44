"""Attention on several devices is attention on one: the same numbers, each
exchange counted, and an error instead of a wait that never ends.

A world of 2 or 4 ranks is started once, as this file's own main program: it
runs all the cases, and each rank writes down what came out. What must come
out is computed here, in one process and in float64.
"""

import contextlib
import multiprocessing
import os
import subprocess
import sys
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import torch.distributed as dist
import torch.distributed.tensor.parallel  # before the fork
from torch.distributed.device_mesh import init_device_mesh
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from selfattn.devices.heads import tensor_parallel
from selfattn.devices.ring import ring_attention
from selfattn.devices.ulysses import ulysses_attention
from selfattn.devices.world import on_ranks
from selfattn.dot_product import attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.masks import padding_mask, window_mask
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import rope
from selfattn.positions.relative import ShawAttention

BATCH, HEADS, D, D_V = 3, 4, 5, 7
# Seconds that a rank is waited for, where it never comes; as many are left to
# the ranks to be connected at all, on however busy a machine.
LATE = 2.0
LIMIT = 300.0  # and a whole world, so that a hang is a failure


# W_o adds its bias once the heads are added up; the mechanism's own tables.
WHOLE = ("W_o.bias", "attend.for_keys", "attend.for_values")


class Case(NamedTuple):
    """One call on tokens that the ranks share: n_q queries and n_k keys."""

    call: object
    n_q: int
    n_k: int
    causal: bool = False
    tables: str = ""  # "rows": for each query; "padding": the same for all


WINDOW = partial(sliding_window_attention, window=3)
CASES = {
    f"{call.__name__} of {n}{' causal' * causal}": Case(call, n, n, causal)
    for call in (ring_attention, ulysses_attention)
    for n in (24, 11, 3)  # which comes out even, or not; or a rank has none
    for causal in (False, True)
} | {
    "ring, tables": Case(ring_attention, 11, 11, tables="rows"),
    "ring, causal, tables": Case(ring_attention, 11, 11, True, "rows"),
    "ring, across": Case(ring_attention, 7, 13, tables="rows"),
    "ring, causal, across": Case(ring_attention, 7, 13, True),
    "ring, causal, too many": Case(ring_attention, 13, 7, True, "padding"),
    "ring, padding": Case(ring_attention, 11, 11, True, "padding"),
    "ulysses, padding": Case(ulysses_attention, 11, 11, True, "padding"),
    "ulysses, across": Case(ulysses_attention, 7, 13, True, "padding"),
    "ulysses, flash": Case(
        partial(ulysses_attention, attend=flash_attention), 11, 11, True
    ),
    "ulysses, window": Case(
        partial(ulysses_attention, attend=WINDOW), 11, 11, True
    ),
}


def numbers(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator)


def given(case):
    """Queries, keys, values, mask and bias of all ranks together."""
    q = numbers(BATCH, HEADS, case.n_q, D, seed=1)
    k = numbers(BATCH, HEADS, case.n_k, D, seed=2)
    v = numbers(BATCH, HEADS, case.n_k, D_V, seed=3)
    if not case.tables:
        return q, k, v, None, None
    n_rows = case.n_q if case.tables == "rows" else 1
    bias = numbers(HEADS, n_rows, case.n_k, seed=4)
    mask = padding_mask(torch.tensor([case.n_k, 5, 2]), case.n_k)
    if case.tables == "rows":
        mask = mask & (numbers(case.n_q, case.n_k, seed=5) < 0.5)
        mask[..., 2, :] = False  # a query that may see nothing
    return q, k, v, mask, bias


def layers():
    """Layers to deal out, by name, and how each is called."""
    torch.manual_seed(0)
    x, y = numbers(2, 7, 32, seed=6), numbers(2, 11, 32, seed=7)
    own_rows = {"bias": numbers(8, 7, 7, seed=8)[None], "causal": True}
    padded = {"mask": padding_mask(torch.tensor([7, 3]), 7)}
    learned = numbers(7, 7, seed=10).requires_grad_()
    for_each = numbers(1, 8, 7, 7, seed=11).requires_grad_()
    one = MultiHeadAttention(32, 8, projection_bias=True)
    few = MultiHeadAttention(32, 8, n_kv_heads=4, rotate=rope)
    return {
        "itself": (one, (x,), {}),
        "fewer key heads": (few, (x,), {"causal": True}),
        "a bias for each head": (one, (x,), own_rows),
        "a learned bias": (one, (x,), {"bias": learned}),
        "a learned bias for each head": (one, (x,), {"bias": for_each}),
        "padding": (one, (x,), padded),
        "a context": (few, (x, y), {}),
        "a context by name": (one, (x,), {"context": y}),
        "a mechanism that learns": (distances(), (x,), {"causal": True}),
    }


def distances():
    """A layer whose mechanism has tables of its own, the same for all heads.

    Each rank gave them what its own heads passed back, and no more: after a
    step the ranks had different tables, and the layer no longer was one.
    """
    attend = ShawAttention(4, max_distance=2)
    return MultiHeadAttention(32, 8, attend=attend, projection_bias=True)


# What a rank runs


EXCHANGES = (
    *("send", "all_reduce", "allreduce_", "alltoall_base_"),
    "allgather_",
)


class Exchanges(TorchDispatchMode):
    """What is exchanged inside: the name and the bytes of each."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.__name__.partition(".")[0]
        if name in EXCHANGES:
            x = args[1] if name == "alltoall_base_" else args[0]
            x = x[0] if isinstance(x, list) else x
            bytes_of = x.nbytes if isinstance(x, torch.Tensor) else 0
            self.seen.append((name, bytes_of))
        return func(*args, **(kwargs or {}))


def part(x, rank, ranks):
    """A rank's part of the tokens."""
    return x.tensor_split(ranks, dim=-2)[rank].clone()


def run_case(case, rank, ranks):
    """The call and its way back, with the exchanges of each."""
    *qkv, mask, bias = given(case)
    inputs = [part(x, rank, ranks).requires_grad_() for x in qkv]
    if case.tables == "rows":
        mask, bias = (part(x, rank, ranks) for x in (mask, bias))
    options = {} if mask is None else {"mask": mask, "bias": bias}
    if bias is not None:
        inputs.append(bias.requires_grad_())
    with Exchanges() as there:
        output = case.call(*inputs[:3], causal=case.causal, **options)
    g = part(numbers(BATCH, HEADS, case.n_q, D_V, seed=9), rank, ranks)
    with Exchanges() as back:
        grads = torch.autograd.grad(output, inputs, g)
    return [output.detach(), *grads], there.seen, back.seen


def run_layer(layer, tokens, options, ranks):
    """A layer dealt out: its output, and the gradients of all there is."""
    layer = tensor_parallel(layer, init_device_mesh("cpu", (ranks,)))
    tokens = [x.clone().requires_grad_() for x in tokens]
    learned = [x for x in options.values() if getattr(x, "is_leaf", False)]
    learned = [x for x in learned if x.requires_grad]
    with Exchanges() as there:
        output = layer(*tokens, **options)
    with Exchanges() as back:
        output.backward(numbers(*output.shape, seed=9))
    weights = [whole(p.grad) for p in layer.parameters()]
    held = [getattr(p, "_local_tensor", p).numel() for p in layer.parameters()]
    grads = [x.grad * 1 for x in (*tokens, *learned)]
    results = [output.detach() * 1, *grads, *weights]
    return results, there.seen, back.seen, held


def whole(x):
    """All of what the ranks hold parts of."""
    return x.full_tensor() if hasattr(x, "full_tensor") else x * 1


def refusals(rank, ranks):
    """What each rank says to calls that do not fit together."""
    q = torch.randn(BATCH, HEADS, 3, D)
    other = torch.randn(BATCH, HEADS, 3, D + rank)
    rows = torch.ones(3, 3 * ranks, dtype=torch.bool)
    odd = MultiHeadAttention(21, 3)
    mesh = init_device_mesh("cpu", (ranks,))
    x = q.clone().requires_grad_()
    twice = partial(torch.autograd.grad, ring_attention(x, q, q).sum(), x)
    calls = {
        "ring, features": lambda: ring_attention(other, other, other),
        "ulysses, features": lambda: ulysses_attention(other, other, other),
        "mask": lambda: ring_attention(q, q, q, mask=rows[:, 1:]),
        "rows": lambda: ulysses_attention(q, q, q, mask=rows),
        "heads": lambda: ulysses_attention(*[q[:, :3]] * 3),
        "layer": lambda: tensor_parallel(odd, mesh),
        "twice": lambda: twice(create_graph=True),
    }
    said = {}
    for name, call in calls.items():
        try:
            call()
        except (ValueError, RuntimeError) as error:
            said[name] = f"{type(error).__name__}: {error}"
    return said


def unanswered(rank, ranks):
    """What the others say when the last rank does not come, and how soon.

    First it is late, and they give up. Then it ends, while they are on their
    way back round the ring.
    """
    q = torch.randn(BATCH, HEADS, 3, D).requires_grad_()
    output = ring_attention(q, q, q).sum()
    one, two = (
        dist.new_group(timeout=timedelta(seconds=LATE)) for _ in range(2)
    )
    dist.barrier()
    if rank == ranks - 1:
        time.sleep(2.5 * LATE)
        os._exit(0)
    calls = {
        "late, ring": partial(ring_attention, q, q, q, group=one),
        "late, ulysses": partial(ulysses_attention, q, q, q, group=two),
        "gone": output.backward,
    }
    said = {}
    for name, call in calls.items():
        begin = time.monotonic()
        try:
            call()
        except RuntimeError as error:
            said[name] = f"{error}", time.monotonic() - begin
    return said


def run_rank(rank, ranks, folder):
    """All of it, and what came out into a file."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(str(folder / "store"), ranks),
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=LIMIT / 2),
    )
    found = {
        "cases": {n: run_case(c, rank, ranks) for n, c in CASES.items()},
        "layers": {n: run_layer(*x, ranks) for n, x in layers().items()},
        "refusals": refusals(rank, ranks),
    }
    torch.save(found, folder / f"{rank}.pt")
    found["unanswered"] = unanswered(rank, ranks)
    torch.save(found, folder / f"{rank}.pt")
    os._exit(0)  # no farewell: one is gone already


def main(ranks, folder):
    """Fork the ranks, once all that they import is here."""
    context = multiprocessing.get_context("fork")
    started = [
        context.Process(target=run_rank, args=(rank, ranks, folder))
        for rank in range(ranks)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(LIMIT)
    for process in started:
        process.kill()
    sys.exit(max(abs(process.exitcode or 0) for process in started))


# What must have come out


@pytest.fixture(scope="module")
def world(request, tmp_path_factory):
    """How many ranks there were, and what each of them found."""
    ranks = request.param
    folder = tmp_path_factory.mktemp("world")
    done = subprocess.run(
        [sys.executable, __file__, str(ranks), str(folder)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [torch.load(folder / f"{rank}.pt") for rank in range(ranks)]


def assert_near(actual, expected, most):
    """Within the error that several devices may add, in float32."""
    assert actual.dtype == torch.float32
    assert_close(actual.double(), expected, atol=most, rtol=0)


def check_case(case, found):
    """The parts of all ranks, together, are what one process has."""
    *qkv, mask, bias = (x if x is None else x.double() for x in given(case))
    inputs = [x.requires_grad_() for x in (*qkv, bias) if x is not None]
    mask = mask if mask is None else mask.bool()
    own = {}
    if getattr(case.call, "keywords", {}).get("attend") is WINDOW:
        own = {"mask": window_mask(case.n_q, case.n_k, 3)}
    options = own or {"mask": mask, "bias": bias}
    expected = attention(*qkv, causal=case.causal, **options)
    g = numbers(BATCH, HEADS, case.n_q, D_V, seed=9).double()
    grads = torch.autograd.grad(expected, inputs, g)
    output, *more = (torch.cat(x, dim=-2) for x in zip(*found, strict=True))
    assert_near(output, expected, 1e-6)
    for i, grad in enumerate(grads):
        actual = more[i]
        if i == 3 and case.tables == "padding":
            actual = sum(x[-1] for x in found)
        assert_near(actual, grad, 5e-6)


def check_layer(layer, tokens, options, found, ranks):
    """Every rank has the whole output and gradient, and its part of the
    weights; nothing of what was given has changed.
    """
    layer = layer.double()
    tokens = [x.double().requires_grad_() for x in tokens]
    learned = []
    for name, x in options.items():
        if torch.is_tensor(x) and x.is_floating_point():
            options[name] = x.detach().double().requires_grad_(x.requires_grad)
            learned += [options[name]] if x.requires_grad else []
    output = layer(*tokens, **options)
    g = numbers(*output.shape, seed=9).double()
    inputs = (*tokens, *learned, *layer.parameters())
    grads = torch.autograd.grad(output, inputs, g)
    for (result, *more), _, _, held in found:
        assert_near(result, output.detach(), 1e-6)
        for actual, expected in zip(more, grads, strict=True):
            assert_near(actual, expected, 5e-6)
        assert held == [
            p.numel() // (1 if name in WHOLE else ranks)
            for name, p in layer.named_parameters()
        ]


def check_exchanges(found, ranks):
    """As many as the formulas say, and as many bytes, for each rank."""
    m = 24 // ranks
    block = 4 * BATCH * HEADS * m * (D + D_V)  # keys and values
    swapped = [4 * BATCH * HEADS * m * d for d in (D, D, D_V, D_V)]
    shapes = 2  # small ones, to tell each other what they hold
    for rank in found:
        for causal in ("", " causal"):
            _, there, back = rank["cases"]["ring_attention of 24" + causal]
            assert [x for x, _ in there[:shapes]] == ["allgather_"] * shapes
            assert there[shapes:] == [("send", block)] * (ranks - 1)
            assert back == [("send", block)] * (2 * ranks - 1)
            _, there, back = rank["cases"]["ulysses_attention of 24" + causal]
            assert [x for x, _ in there[:shapes]] == ["allgather_"] * shapes
            swaps = [("alltoall_base_", size) for size in swapped]
            assert there[shapes:] == swaps
            assert sorted(back) == sorted(swaps)
        for name, result in rank["layers"].items():
            _, there, back, _ = result
            assert there == [("all_reduce", 4 * 2 * 7 * 32)]
            context = [("all_reduce", 4 * 2 * 11 * 32)] * (
                name == "a context"  # by name, it is not learned from
            )
            sizes = {
                "a learned bias": [7 * 7],
                "a learned bias for each head": [8 * 7 * 7],
                "a mechanism that learns": [5 * 4, 5 * 4],  # two tables
            }
            bias = [("allreduce_", 4 * n) for n in sizes.get(name, [])]
            assert sorted(back) == sorted([*there, *context, *bias])


def check_refusals(found):
    """The same words on every rank, and none of them waits for another."""
    rules = {
        "ring, features": "ValueError: ranks may differ in the number",
        "ulysses, features": "ValueError: ranks may differ in the number",
        "mask": "ValueError: mask must broadcast to",
        "rows": "ValueError: ulysses_attention cannot use a mask: its heads",
        "heads": "ValueError: the number of ranks must divide the number of",
        "layer": "ValueError: the number of ranks must divide n_kv_heads",
        "twice": "RuntimeError: ring_attention can be differentiated once",
    }
    for rank in found:
        assert rank["refusals"].keys() == rules.keys()
        for name, rule in rules.items():
            assert rank["refusals"][name].startswith(rule)


def check_unanswered(found):
    """All but the last tell what it means, and none waits much longer."""
    for number, rank in enumerate(found[:-1]):
        assert rank["unanswered"].keys() == {
            "late, ring",
            "late, ulysses",
            "gone",
        }
        for said, seconds in rank["unanswered"].values():
            who = f"rank {number} of {len(found)} got no answer from another"
            assert who in said
            assert seconds < LATE + 5  # a busy machine is no failure


@pytest.mark.parametrize("world", [2, 4], indirect=True)
def test_several_ranks_are_one_process(world):
    """One world, and all that is to be seen in it."""
    for name, case in CASES.items():
        with told(name):
            check_case(case, [rank["cases"][name][0] for rank in world])
    for name, layer in layers().items():
        with told(name):
            found = [rank["layers"][name] for rank in world]
            check_layer(*layer, found, len(world))
    check_exchanges(world, len(world))
    check_refusals(world)
    check_unanswered(world)


@contextlib.contextmanager
def told(name):
    """Add to an error which case it is of."""
    try:
        yield
    except AssertionError as error:
        error.add_note(name)
        raise


# What one process can tell


@pytest.fixture
def alone():
    """A world of one rank."""
    dist.init_process_group(
        "gloo", store=dist.HashStore(), rank=0, world_size=1
    )
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("call", [ring_attention, ulysses_attention])
def test_without_a_group_nobody_attends_alone(call):
    q = torch.randn(2, 3, 5, 7)
    with pytest.raises(ValueError, match="init_process_group first"):
        call(q, q, q)


def test_what_ulysses_hands_over_cannot_be_bound_before():
    """Its own ``causal=False`` overrode a causal partial, without a word."""
    q = torch.randn(2, 3, 5, 7)
    causal = partial(attention, causal=True)
    with pytest.raises(ValueError, match=r"but attend binds causal"):
        ulysses_attention(q, q, q, attend=causal)


@pytest.mark.parametrize(
    ("call", "option", "wrong"),
    [
        (ulysses_attention, "attend", "gelu"),
        (ulysses_attention, "group", object()),
        (ring_attention, "group", 3),
    ],
)
@pytest.mark.usefixtures("alone", "unchecked")
def test_what_is_no_mechanism_or_group_is_named(call, option, wrong):
    q = torch.randn(2, 3, 5, 7)
    with pytest.raises(TypeError, match=rf"{option} must be a"):
        call(q, q, q, **{option: wrong})


@pytest.mark.parametrize(
    "given",
    [{"layer": torch.nn.Linear(8, 8)}, {"mesh": object()}, {"layer": None}],
)
@pytest.mark.usefixtures("alone", "unchecked")
def test_what_is_no_layer_or_mesh_is_named(given):
    right = {"layer": MultiHeadAttention(8, 2), "mesh": None}
    with pytest.raises(TypeError, match=rf"{min(given)} must be a "):
        tensor_parallel(**{**right, **given})


# What two can tell, or none of them is there


def spoilt_grads(rank, n_ranks, part, poison, at):
    """What the first five queries of eight pass back on this rank."""
    tokens = numbers(3, 1, HEADS, 8, D, seed=9)
    tokens["qkv".index(part), 0, :, at, 1] = poison
    own = slice(8 // n_ranks * rank, 8 // n_ranks * (rank + 1))
    mine = [x[..., own, :].clone().requires_grad_() for x in tokens]
    bias = torch.zeros(8, requires_grad=True)
    output = ring_attention(*mine, bias=bias, causal=True)
    asked = (torch.arange(8)[own] < 5).float()[:, None]
    given = asked * output.detach()  # as of its square
    return torch.autograd.grad(output, (*mine, bias), given)


@pytest.mark.parametrize("part", ["q", "k", "v"])
@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_ring_passes_back_nothing_of_who_sees_what_is_spoilt(part, poison):
    """The sixth token is; to the keys of other ranks its queries passed NaN,
    though the loss asks for none of them.
    """
    work = partial(spoilt_grads, part=part, at=5)
    found, sound = (
        on_ranks(partial(work, poison=number), 2) for number in (poison, 0.5)
    )
    for of_rank, wanted in zip(found, sound, strict=True):
        for x, y in zip(of_rank, wanted, strict=True):
            assert_close(x, y)


def shape_on_meta(rank, n_ranks):
    q = torch.empty(2, 4, 3 + rank, 5, device="meta", requires_grad=True)
    output = ring_attention(q, q, q, causal=True)
    output.sum().backward()
    return tuple(output.shape), tuple(q.grad.shape)


def test_a_ring_of_shapes_alone_sends_nothing():
    """It waited for what cannot be sent, and said that nobody answers."""
    found = on_ranks(shape_on_meta, 2, timeout=LATE)
    assert found == [((2, 4, n, 5),) * 2 for n in (3, 4)]


def several_grads(rank, n_ranks):
    q = torch.randn(4, 3, 5, requires_grad=True)
    output = ulysses_attention(q, q, q)
    several = torch.ones(3, *output.shape)
    try:
        torch.autograd.grad(output, q, several, is_grads_batched=True)
    except ValueError as error:
        return str(error)
    return ""


def test_several_gradients_at_once_are_no_lost_rank():
    """It was said that another rank had ended."""
    for told in on_ranks(several_grads, 2):
        assert told.startswith("ulysses_attention takes back one gradient")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
