"""What a computation costs: time, memory and multiplications.

Bytes and FLOPs are counted: they are the same on every machine, so they can
be asserted. Seconds are measured, and belong beside the machine's name.
"""

import gc
import itertools
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Annotated

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from selfattn.called import answered
from selfattn.products import PRODUCTS, Countable
from selfattn.signatures import (
    Within,
    checked,
    is_number,
    is_whole,
    shown,
)

Threads = Annotated[int, Within(1, 1024)]  # PyTorch would make any number
# Two of PyTorch's profilers at once, of two threads, end the process.
ONE_PROFILER = threading.Lock()


class LiveBytes(TorchDispatchMode):
    """Watch a computation, and count the bytes of the tensors it keeps.

    Only what is made inside the ``with`` counts, the gradients of a backward
    pass among it, and each storage once, however many views it has. It is
    subtracted as soon as its memory is free again. Scratch memory inside one
    of PyTorch's kernels is not seen, nor what another thread makes.

    Attributes:
        live: bytes that are held now.
        peak: the most bytes that were ever held at once.
        largest: bytes of the largest single tensor.

    >>> with LiveBytes() as memory:
    ...     row, column = torch.zeros(1, 5), torch.zeros(3, 1)
    ...     table = row + column
    ...     del row, column, table
    >>> memory.peak == 4 * (5 + 3 + 15), memory.live, memory.largest
    (True, 0, 60)
    """

    def __init__(self) -> None:
        """Start from nothing."""
        super().__init__()
        self.live = self.peak = self.largest = 0
        self.sizes: dict[int, int] = {}  # of each storage made inside

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run one operation, and look at what it made."""
        kwargs = kwargs or {}
        if func._can_decompose():  # as in inference mode: look at each step
            with self:
                return func.decompose(*args, **kwargs)
        given = {address(x) for x in tensors_in((args, kwargs))}
        given |= {x._cdata for x in storages_in(args) if is_held(x)}
        if func is torch.ops.aten.lift_fresh.default:  # of `torch.tensor`
            given = set()
        result = func(*args, **kwargs)
        for x in tensors_in(result):
            if address(x) in self.sizes or address(x) not in given:
                self.hold(x.untyped_storage())
        return result

    def hold(self, storage: torch.UntypedStorage) -> None:
        """Count a storage, or what it has grown by, until it is freed."""
        key, size = storage._cdata, storage.nbytes()
        if key not in self.sizes:
            weakref.finalize(storage, self.release, key).atexit = False
        self.live += size - self.sizes.get(key, 0)
        self.sizes[key] = size
        self.peak = max(self.peak, self.live)
        self.largest = max(self.largest, size)

    def release(self, key: int) -> None:
        """Forget a storage whose memory is free again."""
        self.live -= self.sizes.pop(key)


def tensors_in(tree: object) -> list[Tensor]:
    """Every tensor in nested tuples, lists and dictionaries; of a sparse one
    those that it consists of.
    """
    found = [x for x in tree_leaves(tree) if isinstance(x, Tensor)]
    return [part for x in found for part in parts_of(x)]


def parts_of(x: Tensor) -> list[Tensor]:
    """The tensors whose memory a tensor holds: itself, unless it is sparse.

    Raises:
        ValueError: if its memory cannot be looked at.
    """
    if x.layout is torch.strided:
        return [x]
    if x.layout is torch.sparse_coo:
        return [x._indices(), x._values()]
    if x.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [x.crow_indices(), x.col_indices(), x.values()]
    if x.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [x.ccol_indices(), x.row_indices(), x.values()]
    if x.layout is torch.jagged:
        return [x.values(), x.offsets()]
    raise ValueError(
        "bytes are counted of tensors that are dense or sparse, but here is "
        f"{shown(x)}"
    )


def address(x: Tensor) -> int:
    """Where the memory of a tensor is described: the same for its views."""
    return x.untyped_storage()._cdata


def storages_in(args: Iterable[object]) -> list[torch.UntypedStorage]:
    """The storages that an operation is given, as one that makes a tensor of
    one is.
    """
    return [x for x in args if isinstance(x, torch.UntypedStorage)]


def is_held(storage: torch.UntypedStorage) -> bool:
    """Whether a tensor has a storage that an operation is given, one of any
    that there are; if none has, whoever copies a tensor has just made it.
    """
    for x in gc.get_objects():
        if type(x) not in (Tensor, Parameter):
            continue
        # Not by a function of its own: a nested tensor cannot be handed to one
        # whose arguments are looked at.
        with suppress(NotImplementedError, RuntimeError):  # or it is sparse
            if x.untyped_storage()._cdata == storage._cdata:
                return True
    return False


@checked
def peak_bytes(f: Callable[[], object]) -> int:
    """The most bytes that the tensors made by ``f()`` occupy at once.

    Args:
        f: the computation, with nothing left to fill in. What it returns
            counts too; what it is given does not.

    >>> x = torch.zeros(7, 11)
    >>> peak_bytes(lambda: x.exp().sum()) == 4 * (7 * 11 + 1)
    True
    """
    with LiveBytes() as memory:
        answered("f", f)
    return memory.peak


@checked
def allocated_bytes(f: Callable[[], object]) -> int:
    """The most bytes that ``f()`` adds on the CPU, as its allocator saw it.

    Unlike `peak_bytes` this sees the scratch memory inside PyTorch's kernels
    too. It is PyTorch's profiler that watches.

    Raises:
        ValueError: if a profiler watches already, who would see nothing more.

    >>> x = torch.zeros(7, 11)
    >>> allocated_bytes(lambda: x.exp()) == 4 * 7 * 11
    True
    """
    if torch.autograd._profiler_enabled():
        raise ValueError(
            "one profiler can watch at a time, but one is at work already, "
            "such as that of another allocated_bytes around this one"
        )
    with (
        ONE_PROFILER,
        profile(
            activities=[ProfilerActivity.CPU], profile_memory=True
        ) as watched,
    ):
        answered("f", f)
    return most_held(
        (event.start_ns(), event.nbytes())
        for event in watched.profiler.kineto_results.events()
        if event.name() == "[memory]"
    )


@checked
def most_held(changes: Iterable[tuple[int, int]]) -> int:
    """The most bytes held at once, of what was taken and given back.

    Args:
        changes: a moment and the bytes taken then, fewer than none where they
            are given back. They may be told in any order: a profiler that
            tells them thread by thread would otherwise let memory stay held
            that was free long before the other thread took its own.

    >>> most_held([(1, 20), (3, -20), (2, 4), (4, 7)])
    24
    """
    # A single number can be gone through, PyTorch says, until one does.
    told = [changes] if isinstance(changes, Tensor) else list(changes)
    for change in told:
        pair = isinstance(change, tuple | list) and len(change) == 2
        if not (pair and all(map(is_whole, change))):
            raise TypeError(
                "changes must be pairs of a moment and a number of bytes, two "
                f"whole numbers, but one of them is {shown(change)}"
            )
    in_time = sorted(told, key=lambda change: change[0])
    held = itertools.accumulate((size for _, size in in_time), initial=0)
    return max(held)


@checked
def largest_bytes(f: Callable[[], object]) -> int:
    """The bytes of the largest single tensor that ``f()`` makes.

    >>> x = torch.zeros(7, 11)
    >>> largest_bytes(lambda: (x.sum(0), x.sum(1))) == 4 * 11
    True
    """
    with LiveBytes() as memory:
        answered("f", f)
    return memory.largest


@checked
def flops(f: Callable[[], object]) -> int:
    """Floating-point operations in the matrix products of ``f()``.

    A product of (n, d) and (d, m) matrices is 2 n d m operations: a multiply
    and an add each. Softmax and other steps along the way count nothing, and
    a causal kernel counts as if it skipped nothing. What another thread
    multiplies is not seen.

    >>> x, y = torch.zeros(7, 5), torch.zeros(5, 11)
    >>> flops(lambda: x @ y) == 2 * 7 * 5 * 11
    True
    """
    counter = FlopCounterMode(display=False, custom_mapping=PRODUCTS)
    with counter, Countable():
        answered("f", f)
    return counter.get_total_flops()


@checked
def seconds(
    f: Callable[[], object],
    *,
    repeats: int = 5,
    threads: Threads = 1,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """How long ``f()`` takes on the CPU: the least of several tries.

    The first call is not counted. The least, not the mean: whatever else
    runs on the machine can make a try longer, never shorter.

    Args:
        f: the computation, with nothing left to fill in.
        repeats: how many calls to time.
        threads: how many threads PyTorch may use meanwhile.
        clock: CPU time, which a busy neighbour hardly touches. With more
            than one thread it adds up over them: use `time.perf_counter`.

    Raises:
        ValueError: if ``repeats`` is smaller than 1, or if the clock goes
            back: the least would be less than nothing.
        TypeError: if it tells no number.
    """
    check_repeats(repeats)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        answered("f", f)
        return min(one_run(f, clock) for _ in range(repeats))
    finally:
        torch.set_num_threads(before)


def one_run(f: Callable[[], object], clock: Callable[[], float]) -> float:
    """What the clock says that one call took."""
    start = clock()
    f()
    end = clock()
    if not (is_number(start) and is_number(end)):
        raise TypeError(
            "clock must tell seconds, a number, but it told "
            f"{shown(start)} and {shown(end)}"
        )
    if not 0 <= end - start < math.inf:  # NaN, if both are infinite
        raise ValueError(
            "clock must tell finite seconds and never go back, but it told "
            f"{shown(start)} and then {shown(end)}"
        )
    return end - start


@checked
def cuda_seconds(f: Callable[[], object], *, repeats: int = 5) -> float:
    """How long ``f()`` takes on the GPU: the least of several tries.

    A call returns before the GPU has done its work, so the GPU itself notes
    the time, in two events around the call. The first call is not counted.

    Raises:
        ValueError: if ``repeats`` is smaller than 1, or without a CUDA GPU.
    """
    check_repeats(repeats)
    check_cuda()
    answered("f", f)
    tries = []
    for _ in range(repeats):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        f()
        end.record()
        torch.cuda.synchronize()
        tries.append(start.elapsed_time(end) / 1000)  # it tells milliseconds
    return min(tries)


@checked
def cuda_peak_bytes(f: Callable[[], object]) -> int:
    """The most bytes that ``f()`` adds on the GPU, as its allocator saw it.

    Unlike `peak_bytes` this sees the scratch memory of kernels too, and
    rounds each tensor up to the allocator's blocks of 512 bytes.

    Raises:
        ValueError: without a CUDA GPU.
    """
    check_cuda()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    answered("f", f)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


@checked
def log_log_slope(
    ns: Sequence[float | int], values: Sequence[float | int]
) -> float:
    """The exponent p of the law values ∝ nᵖ that fits best.

    The slope of the least-squares line through log(values) against log(ns):
    1 where doubling n doubles the cost, 2 where it quadruples it.

    Raises:
        ValueError: if there are not two different ns, whose logarithms
            differ, all of them and all values positive and finite, one value
            for each n.

    >>> round(log_log_slope([100, 200, 400], [3, 12, 48]), 6)
    2.0
    """
    positive = [is_number(x) and 0 < x < math.inf for x in (*ns, *values)]
    xs = [math.log(n) for n in ns] if all(positive) else []
    if len(ns) != len(values) or len(set(xs)) < 2:
        raise ValueError(
            "a slope needs one positive finite value for each of at least two "
            f"different positive n, but ns={ns} and values={values}"
        )
    ys = [math.log(y) for y in values]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum(
        (x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)
    )
    return covariance / sum((x - x_mean) ** 2 for x in xs)


def check_repeats(repeats: int) -> None:
    """Raise unless there is something to take the least of."""
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, but repeats={repeats}")


def check_cuda() -> None:
    """Raise without a GPU: a time or a size of nothing would look real."""
    if not torch.cuda.is_available():
        raise ValueError(
            "this measures a CUDA GPU, but torch.cuda.is_available() is False"
        )
