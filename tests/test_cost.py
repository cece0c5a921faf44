"""Counting and measuring, against what one can count by hand."""

import copy
import gc
import itertools
import math
import time
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from selfattn.cost import (
    LiveBytes,
    allocated_bytes,
    cuda_peak_bytes,
    cuda_seconds,
    flops,
    largest_bytes,
    log_log_slope,
    most_held,
    peak_bytes,
    seconds,
)
from selfattn.dot_product import attention, attention_weights, fused_attention
from selfattn.multihead import MultiHeadAttention

B, H, N_Q, N_K, D, D_V = 2, 3, 37, 53, 5, 7


def inputs(device="cpu", dtype=torch.float32, d_v=D_V):
    shapes = (N_Q, D), (N_K, D), (N_K, d_v)
    return [torch.randn(B, H, *s, device=device, dtype=dtype) for s in shapes]


def naive(q, k, v):
    scores = q @ k.mT
    weights = (scores / q.shape[-1] ** 0.5).softmax(dim=-1)
    return weights @ v


# Bytes


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_naive_attention_holds_three_tables(device, dtype):
    """Scores, scaled and weights; the scaled ones go before the output."""
    q, k, v = inputs(device, dtype)
    word, table = torch.finfo(dtype).bits // 8, B * H * N_Q * N_K
    assert peak_bytes(lambda: naive(q, k, v)) == word * 3 * table
    with LiveBytes() as memory:
        output = naive(q, k, v)
    assert memory.live == word * B * H * N_Q * D_V
    assert memory.largest == word * table
    del output
    assert memory.live == 0


def test_without_names_naive_attention_holds_two():
    q, k, v = inputs()
    q, k = q.repeat(1, 1, 1, 20), k.repeat(1, 1, 1, 20)  # n d > n² / 2
    v = v.repeat(1, 1, 1, 20)

    def nameless():
        return (q @ k.mT).mul_(100**-0.5).softmax(dim=-1) @ v

    table, output = N_Q * N_K, N_Q * 20 * D_V
    assert output > table  # so the product is where the most is held
    assert peak_bytes(nameless) == 4 * B * H * (table + output)


def test_the_definition_holds_four_tables(device):
    """Scores, scaled, and softmax before and after its empty rows.

    One byte a query says which rows are empty.
    """
    q, k, v = inputs(device)
    expected = B * H * (4 * 4 * N_Q * N_K + N_Q)
    assert peak_bytes(lambda: attention(q, k, v)) == expected
    assert peak_bytes(lambda: attention_weights(q, k)) == expected


@pytest.mark.parametrize("backend", [None, SDPBackend.MATH])
def test_the_fused_form_holds_its_output(backend):
    """And one log-sum-exp a query: the least there is. Not so unfused."""
    q, k, v = inputs(d_v=D)
    least = 4 * B * H * N_Q * (D + 1)
    if backend is None:
        assert peak_bytes(lambda: fused_attention(q, k, v)) == least
    else:
        with sdpa_kernel(backend):
            peak = peak_bytes(lambda: fused_attention(q, k, v))
        assert peak > 4 * B * H * N_Q * N_K


def test_the_allocator_agrees_where_no_kernel_has_scratch():
    q, k, v = inputs()
    expected = peak_bytes(lambda: naive(q, k, v))
    assert allocated_bytes(lambda: naive(q, k, v)) == expected


def test_bytes_are_added_up_in_the_order_of_time():
    """Two threads, told one after the other, never held all at once.

    One takes 100 and gives them back; then the other does. To add up what
    comes as it comes is right by luck alone: 200, if the freeing comes last.
    """
    one, other = [(1, 100), (2, -100)], [(3, 100), (4, -100)]
    for told in itertools.permutations(one + other):
        assert most_held(told) == 100
    taken = [change for change in one + other if change[1] > 0]
    freed = [change for change in one + other if change[1] < 0]
    as_told = itertools.accumulate(size for _, size in taken + freed)
    assert max(as_told) == 200
    assert most_held([]) == 0


def test_the_allocator_sees_what_a_kernel_hides():
    """PyTorch's one-operation layer makes its table inside."""
    layer = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    x, table = torch.randn(1, 101, 16), 4 * 2 * 101**2
    with torch.inference_mode():
        f = lambda: layer(x, x, x, need_weights=False)  # noqa: E731
        assert peak_bytes(f) < table < allocated_bytes(f)


def test_a_backward_pass_counts():
    x = torch.randn(7, 11, requires_grad=True)
    with LiveBytes() as memory:
        total = x.exp().sum()
        assert memory.live == 4 * (77 + 1)  # autograd keeps exp(x)
        total.backward()
        assert memory.live == 4 * (1 + 77)  # the sum and the gradient
    # At once: exp(x), the sum, the 1 that backward starts from, the gradient.
    assert memory.peak == 4 * (77 + 1 + 1 + 77)
    x.grad = None
    del total
    assert memory.live == 0


def test_training_the_fused_form_holds_no_table():
    q, k, v = (x.requires_grad_() for x in inputs(d_v=D))

    def train(attend):
        torch.autograd.grad(attend(q, k, v).sum(), (q, k, v))

    table = 4 * B * H * N_Q * N_K
    assert peak_bytes(lambda: train(fused_attention)) < table
    assert peak_bytes(lambda: train(attention)) > 4 * table


def test_a_count_says_the_same_without_any_memory():
    """On the device "meta" nothing is computed, and the count is the same."""
    on_paper = [x.to("meta") for x in inputs()]
    for f in (naive, attention):
        expected = peak_bytes(lambda f=f: f(*inputs_made))
        assert peak_bytes(lambda f=f: f(*on_paper)) == expected


inputs_made = inputs()


def test_what_goes_in_does_not_count():
    x = torch.randn(7, 11)

    def views():
        x.add_(1)
        x.view(11, 7).mT[2:].expand(3, 5, 11)
        torch.add(x, 1, out=x)
        return x

    assert peak_bytes(views) == 0


def test_views_count_once():
    def views():
        x = torch.zeros(7, 11)
        return x, x.view(-1), x.mT, x[0], x.expand(3, 7, 11), x.detach()

    assert peak_bytes(views) == largest_bytes(views) == 4 * 77


def test_a_view_keeps_the_whole_storage_alive():
    with LiveBytes() as memory:
        row = torch.zeros(7, 11)[0]
    assert memory.live == 4 * 77
    del row
    assert memory.live == 0


def test_what_is_freed_is_subtracted_at_once():
    gc.disable()  # a count that waits for the collector is no count
    try:
        with LiveBytes() as memory:
            for _ in range(5):
                x = torch.zeros(7)
                del x
                assert memory.live == 0
            x = torch.zeros(7)
            x = torch.zeros(11)  # the old one lives until the new one is there
            y = torch.zeros(3)
            assert memory.live == 4 * 14
    finally:
        gc.enable()
    assert memory.peak == 4 * 18
    assert memory.largest == 4 * 11
    del x, y


def test_a_storage_that_grows_counts_what_it_grew():
    with LiveBytes() as memory:
        x = torch.zeros(3)
        x.resize_(11)
        assert memory.live == 4 * 11
        y = torch.empty(0)
        torch.add(torch.ones(7), 1, out=y)
        assert memory.live == 4 * (11 + 7)
    del x, y
    assert memory.live == 0


def test_inner_and_outer_counts_agree():
    with LiveBytes() as outer:
        x = torch.zeros(3)
        with LiveBytes() as inner:
            y = x + torch.zeros(7, 1)
    assert inner.peak == 4 * (7 + 21)
    assert outer.peak == 4 * (3 + 7 + 21)
    del x, y
    assert outer.live == inner.live == 0


def test_counting_ends_with_the_block_even_by_an_error():
    with LiveBytes() as memory, pytest.raises(ZeroDivisionError):
        raise ZeroDivisionError
    after = torch.zeros(7)
    assert memory.peak == 0
    del after


def test_counts_repeat_to_the_byte():
    q, k, v = inputs()
    counts = {peak_bytes(lambda: attention(q, k, v)) for _ in range(5)}
    assert len(counts) == 1


# Floating-point operations


@pytest.mark.parametrize("d_v", [D, D_V])
def test_flops_of_attention_are_two_products(d_v):
    q, k, v = inputs(d_v=d_v)
    by_hand = 2 * B * H * N_Q * N_K * (D + d_v)
    assert flops(lambda: attention(q, k, v)) == by_hand
    assert flops(lambda: fused_attention(q, k, v)) == by_hand
    with torch.no_grad():
        assert flops(lambda: fused_attention(q, k, v)) == by_hand


def test_flops_of_training():
    """Two products forward, four backward; fused, the scores once more."""
    q, k, v = (x.requires_grad_() for x in inputs(d_v=D))
    product = 2 * B * H * N_Q * N_K * D
    for attend, products in ((attention, 6), (fused_attention, 7)):
        counted = flops(lambda f=attend: f(q, k, v).sum().backward())
        assert counted == products * product


def test_a_causal_kernel_counts_in_full():
    q, _, _ = inputs()
    by_hand = 4 * B * H * N_Q * N_Q * D
    assert flops(lambda: fused_attention(q, q, q, causal=True)) == by_hand


@pytest.mark.parametrize("attend", [attention, fused_attention])
def test_flops_of_a_layer_are_its_projections_too(attend):
    n, d = 37, 35
    layer, x = MultiHeadAttention(d, 5, attend=attend), torch.randn(1, n, d)
    assert flops(lambda: layer(x)) == 8 * n * d**2 + 4 * n**2 * d


def test_only_products_count():
    x = torch.randn(7, 11)
    assert flops(lambda: (x.exp() * x).softmax(-1).sum()) == 0
    layer = nn.Linear(11, 5)
    assert flops(lambda: layer(x)) == 2 * 7 * 11 * 5


# Time


def scripted(*durations):
    """A clock, and what it will say that each timed call took."""
    steps = itertools.chain.from_iterable((0.0, d) for d in durations)
    now = itertools.accumulate(steps, initial=100.0)
    next(now)
    return lambda: next(now)


def test_the_least_of_the_tries_after_a_first_one():
    calls = []
    clock = scripted(3.0, 2.0, 5.0)
    took = seconds(lambda: calls.append(1), repeats=3, clock=clock)
    assert took == 2.0
    assert len(calls) == 4


def test_threads_are_set_and_set_back():
    before, seen = torch.get_num_threads(), []

    def look():
        seen.append(torch.get_num_threads())

    seconds(look, repeats=2, threads=before + 1)
    seconds(look, repeats=1)
    assert seen == [before + 1] * 3 + [1] * 2
    assert torch.get_num_threads() == before


def test_threads_are_set_back_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        seconds(lambda: 1 / 0, threads=before + 1)
    assert torch.get_num_threads() == before


def test_cpu_time_does_not_pass_while_asleep():
    asleep = seconds(lambda: time.sleep(0.05), repeats=2)
    waited = seconds(
        lambda: time.sleep(0.05), repeats=2, clock=time.perf_counter
    )
    assert asleep < 0.04 < waited


@pytest.mark.parametrize("measure", [seconds, cuda_seconds])
@pytest.mark.parametrize("repeats", [0, -1])
def test_no_tries_have_no_least(measure, repeats):
    with pytest.raises(ValueError, match=f"at least 1, but repeats={repeats}"):
        measure(lambda: None, repeats=repeats)


# On a GPU: a real one where there is one, and always one made of cardboard


class FakeCuda:
    """Enough of torch.cuda to see in which order it is asked what.

    Work is queued by `launch`, and done only when somebody waits for it.
    """

    def __init__(self, monkeypatch):
        self.now, self.queue, self.calls = 0.0, [], 0
        self.allocated = self.peak = 1000
        for name in (
            "synchronize",
            "reset_peak_memory_stats",
            "memory_allocated",
            "max_memory_allocated",
        ):
            monkeypatch.setattr(torch.cuda, name, getattr(self, name))
        monkeypatch.setattr(torch.cuda, "Event", self.event)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    def launch(self, milliseconds, size=0):
        self.calls += 1
        self.queue.append((milliseconds, size))

    def synchronize(self):
        for work in self.queue:
            if callable(work):
                work()
            else:
                self.now += work[0]
                self.peak = max(self.peak, self.allocated + work[1])
        self.queue.clear()

    def event(self, *, enable_timing):
        assert enable_timing
        event = SimpleNamespace(at=None)
        event.record = lambda: self.queue.append(
            lambda: setattr(event, "at", self.now)
        )
        event.elapsed_time = lambda end: end.at - event.at
        return event

    def reset_peak_memory_stats(self):
        assert not self.queue, "what still runs would count"
        self.peak = self.allocated

    def memory_allocated(self):
        return self.allocated

    def max_memory_allocated(self):
        return self.peak


def test_gpu_time_is_taken_by_the_gpu(monkeypatch):
    cuda = FakeCuda(monkeypatch)
    durations = iter([900.0, 30.0, 20.0, 50.0])
    took = cuda_seconds(lambda: cuda.launch(next(durations)), repeats=3)
    assert took == 20.0 / 1000
    assert cuda.calls == 4


def test_gpu_memory_is_what_was_added(monkeypatch):
    cuda = FakeCuda(monkeypatch)
    cuda.peak = 10**9  # of something long ago
    cuda.launch(1.0, size=10**8)  # of something that still runs
    assert cuda_peak_bytes(lambda: cuda.launch(1.0, size=345)) == 345


@pytest.mark.parametrize("measure", [cuda_seconds, cuda_peak_bytes])
def test_without_a_gpu_nothing_is_made_up(monkeypatch, measure):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"is_available\(\) is False"):
        measure(lambda: None)


def test_a_real_gpu_agrees_with_the_count(device):
    """On machines with a GPU; elsewhere the count is compared with itself."""
    q, k, v = (x.repeat(1, 1, 7, 1) for x in inputs(device))
    counted = peak_bytes(lambda: naive(q, k, v))
    if device == "cuda":
        blocks = cuda_peak_bytes(lambda: naive(q, k, v))
        assert counted <= blocks < 1.2 * counted + 2**24  # cuBLAS's scratch
        assert 0 < cuda_seconds(lambda: naive(q, k, v)) < 1
    assert counted == 4 * 3 * B * H * (7 * N_Q) * (7 * N_K)


# Slopes


@pytest.mark.parametrize("power", [-1, 0, 0.5, 1, 2, 3])
def test_a_power_law_has_its_power_for_a_slope(power):
    ns = [101, 211, 401, 797, 1601]
    assert log_log_slope(ns, [3.7 * n**power for n in ns]) == pytest.approx(
        power, abs=1e-12
    )


def test_a_slope_is_that_of_least_squares():
    ns, values = [1, 2, 4, 16], [1.0, 5.0, 3.0, 40.0]
    x = torch.tensor(ns).double().log()
    design = torch.stack([x, torch.ones_like(x)], dim=1)
    y = torch.tensor(values).double().log()[:, None]
    slope = torch.linalg.lstsq(design, y).solution[0].item()
    assert log_log_slope(ns, values) == pytest.approx(slope, rel=1e-12)


def test_an_added_constant_pulls_the_slope_down():
    ns = [10, 100, 1000]
    assert 1 < log_log_slope(ns, [n**2 + 1000 for n in ns]) < 2


@pytest.mark.parametrize(
    ("ns", "values"),
    [
        ([1], [1.0]),
        ([], []),
        ([7, 7], [1.0, 2.0]),
        ([1, 2, 3], [1.0, 2.0]),
        ([0, 2], [1.0, 2.0]),
        ([1, 2], [1.0, 0.0]),
        ([1, 2], [1.0, -3.0]),
    ],
)
def test_no_slope_without_two_points(ns, values):
    with pytest.raises(ValueError, match="two different positive n, but ns="):
        log_log_slope(ns, values)


@pytest.mark.parametrize(
    ("ns", "values"),
    [
        ([1, 2], [1, math.inf]),
        ([1, math.nan], [1, 2]),
        ([1, 2], [1, math.nan]),
        ([1e15, 1e15 + 0.125], [1, 2]),  # whose logarithms are the same
        ([], []),
        ([True, 2], [1, 2]),
    ],
)
def test_a_slope_of_what_is_no_number_is_refused(ns, values):
    """It was NaN, or a division by zero."""
    with pytest.raises(ValueError, match="a slope needs one positive finite"):
        log_log_slope(ns, values)


@pytest.mark.parametrize("threads", [0, 1025, 10**12])
def test_nobody_has_so_many_threads(threads):
    """PyTorch's overflow, or as many threads as were asked for."""
    with pytest.raises(ValueError, match="threads must be a whole number, at"):
        seconds(int, threads=threads)


@pytest.mark.parametrize("changes", [[1], [(1, 2, 3)], [(1, 2), "x"]])
def test_changes_are_pairs(changes):
    with pytest.raises(TypeError, match="changes"):
        most_held(changes)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_bytes_of_a_copy_are_counted_whatever_else_there_is():
    """Who shares its memory is asked of every tensor that there is, nested
    ones, too: where arguments are looked at, as here, it was refused.
    """
    x = torch.zeros(10)
    gc.collect()  # what is younger is looked at first
    other = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    assert peak_bytes(partial(copy.deepcopy, x)) == 44
    assert other.is_nested


@pytest.mark.parametrize(
    "count", [peak_bytes, allocated_bytes, largest_bytes, flops, seconds]
)
def test_what_wants_an_argument_cannot_be_counted(count):
    """Python spoke of a forward that nobody had called."""
    words = r"f must be a function of \(\), but that cannot be said of .*Ident"
    with pytest.raises(TypeError, match=words):
        count(torch.nn.Identity())
