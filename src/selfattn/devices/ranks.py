"""What ranks must know of each other before they exchange anything."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch.distributed as dist
from torch import Tensor

from selfattn.checks import check_fits
from selfattn.transforms import in_no_graph
from selfattn.wrapped import P, R

Group = dist.ProcessGroup | None
Shapes = list[tuple[int, ...]]  # of q, k and v
NOT_WHOLE = (
    "ranks first tell each other in words what they hold, which is in no graph"
    "; without fullgraph=True, this function is called as it is"
)


def place(group: Group) -> tuple[int, int]:
    """The number of this rank in the group, and how many ranks that has.

    Raises:
        ValueError: if there is no process group, or if this process is not
            in it: it would attend to its own tokens alone, and not say so.
    """
    if not dist.is_initialized():
        raise ValueError(
            "ranks must know of each other: call "
            "torch.distributed.init_process_group first, but it was not"
        )
    outside = group is dist.GroupMember.NON_GROUP_MEMBER
    if not (group is None or outside or isinstance(group, dist.ProcessGroup)):
        raise TypeError(
            f"group must be a process group or None, but it is {group!r:.60}"
        )
    rank = dist.get_rank(group)
    if rank < 0:
        raise ValueError("a rank must be in the group, but this one is not")
    return rank, dist.get_world_size(group)


def n_ranks(group: Group = None) -> int:
    """How many ranks there are: what a layer asks of a mechanism whose tokens
    are shared out, before it tells it where they are.
    """
    return place(group)[1]


def uncompiled(attend: Callable[P, R]) -> Callable[P, R]:
    """The mechanism, which `torch.compile` calls and does not look into: what
    ranks first tell each other is no tensor.
    """
    among_ranks = in_no_graph(NOT_WHOLE)(attend)
    vars(among_ranks)["n_ranks"] = n_ranks
    return among_ranks


def check_tables_fit(
    mask: Tensor | None, bias: Tensor | None, q: Tensor, k: Tensor, n_k: int
) -> None:
    """Raise unless tables broadcast to the scores of all ranks' keys, n_k."""
    keys = k.new_empty((*k.shape[:-2], n_k, k.shape[-1]), device="meta")
    for name, table in (("mask", mask), ("bias", bias)):
        check_fits(name, table, q, keys)


@contextmanager
def answers(name: str, group: Group) -> Iterator[None]:
    """Say in words what it means that the other ranks do not answer.

    Raises:
        RuntimeError: as soon as a connection breaks, or else when the
            group's timeout is over.
    """
    try:
        yield
    except RuntimeError as error:
        rank, ranks = place(group)
        raise RuntimeError(
            f"{name}: rank {rank} of {ranks} got no answer from another rank, "
            "which has ended, or has not come this far within the group's "
            "timeout; see what that rank printed last"
        ) from error


def shapes_of_all(
    name: str, group: Group, *qkv: Tensor, causal: bool
) -> list[Shapes]:
    """What each rank holds, once it is clear that all of it fits together.

    Raises:
        ValueError: on every rank alike, unless they differ in nothing but
            the numbers of tokens.
        RuntimeError: if another rank does not answer.
    """
    rank, ranks = place(group)
    kind = f"{qkv[0].dtype}, causal={causal}"
    mine = ([tuple(x.shape) for x in qkv], kind)
    everyone = [mine] * ranks
    if ranks > 1:
        with answers(name, group):
            dist.all_gather_object(everyone, mine, group=group)
    kinds = {
        (kind, *((*shape[:-2], shape[-1]) for shape in shapes))
        for shapes, kind in everyone
    }
    if len(kinds) > 1:
        raise ValueError(
            "ranks may differ in the number of their tokens and in nothing "
            f"else, but q, k and v of rank {rank} and of all are {everyone}"
        )
    return [shapes for shapes, _ in everyone]
