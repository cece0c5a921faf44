"""Exchanges between ranks: how many bytes leave a rank, and are held."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Of the bytes handed to each exchange, how many leave a rank of p. What is
# reduced or gathered goes round in a ring, as gloo and NCCL do it.
LEAVING: dict[str, Callable[[int], float]] = {
    "send": lambda p: 1.0,
    "alltoall_base_": lambda p: (p - 1) / p,
    "allgather_": lambda p: p - 1.0,
    "_allgather_base_": lambda p: p - 1.0,
    "all_gather_into_tensor": lambda p: p - 1.0,
    "reduce_scatter_": lambda p: (p - 1) / p,
    "_reduce_scatter_base_": lambda p: (p - 1) / p,
    "reduce_scatter_tensor": lambda p: (p - 1) / p,
    "all_reduce": lambda p: 2 * (p - 1) / p,
    "allreduce_": lambda p: 2 * (p - 1) / p,
}
# Those that name the place for what comes before what goes.
INPUT_SECOND = {
    *("alltoall_base_", "allgather_", "reduce_scatter_"),
    *("_allgather_base_", "_reduce_scatter_base_"),
}
SILENT = {  # they wait, or get what another rank sends
    *("barrier", "monitored_barrier_", "wait_tensor", "check_for_nan"),
    *("recv_", "recv_any_source_", "irecv", "_wrap_tensor_autograd"),
}


class Sent(TorchDispatchMode):
    """Watch a computation, and count the bytes that leave this rank.

    Attributes:
        bytes: how many left, by the name of the exchange in PyTorch. What is
            reduced or gathered is counted as it goes round in a ring.

    Raises:
        ValueError: in an exchange of which it is not known how much leaves
            whom, such as a broadcast.
    """

    def __init__(self) -> None:
        """Start from nothing."""
        super().__init__()
        self.bytes: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run one operation, and look whether it sends something."""
        name = func.__name__.partition(".")[0]
        between = "c10d" in func.namespace
        if between and name in LEAVING:
            self.bytes[name] += leaving(name, args)
        elif between and name not in SILENT:
            raise ValueError(
                f"bytes are counted of {', '.join(sorted(LEAVING))}, but here "
                f"is {name}"
            )
        return func(*args, **(kwargs or {}))


class SwapsApart(TorchDispatchMode):
    """Let every all-to-all work in memory of its own, and wait for it.

    gloo lets go of what it swapped in another thread, when that gets round
    to it. Bytes that are counted outside this mode are those that the rank
    itself holds, the same in every run.

    >>> from selfattn.cost import LiveBytes
    >>> with SwapsApart(), LiveBytes() as memory:
    ...     twice = 2 * torch.ones(3)
    >>> memory.peak
    24
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run one operation; hand copies to an all-to-all."""
        if func is not torch.ops.c10d.alltoall_base_.default:
            return func(*args, **(kwargs or {}))
        got, sent, *how = args
        copy = got.clone()
        work = func(copy, sent.clone(), *how, **(kwargs or {}))
        dist.Work.unbox(work).wait()
        got.copy_(copy)
        return work


def leaving(name: str, args: Sequence[Any]) -> int:
    """How many bytes leave this rank in one exchange."""
    given = args[1] if name in INPUT_SECOND else args[0]
    tensors = [x for x in tree_leaves(given) if isinstance(x, Tensor)]
    size = sum(x.nbytes for x in tensors)
    group = group_of(args)
    if name == "alltoall_base_" and args[4]:  # the parts differ in length
        mine = args[4][dist.get_rank(group)]
        return size - size * mine // max(sum(args[4]), 1)
    return round(size * LEAVING[name](dist.get_world_size(group)))


def group_of(args: Sequence[Any]) -> dist.ProcessGroup | None:
    """The ranks among which an exchange is: a group, or the name of one."""
    for x in args[1:]:
        if isinstance(x, torch.ScriptObject) and "ProcessGroup" in str(x):
            return dist.ProcessGroup.unbox(x)
    names = [x for x in args if isinstance(x, str)]
    if names:
        return dist.distributed_c10d._resolve_process_group(names[-1])
    return None
