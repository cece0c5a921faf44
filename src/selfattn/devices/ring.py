"""Ring attention: each device has some of the tokens, for all the heads."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from selfattn.checks import (
    batch_shape,
    check_call,
    check_once,
    check_types,
)
from selfattn.devices.ranks import (
    Group,
    answers,
    check_tables_fit,
    place,
    shapes_of_all,
    uncompiled,
)
from selfattn.dot_product import (
    Bias,
    Keys,
    Mask,
    Output,
    Queries,
    Values,
    widen,
)
from selfattn.efficient.flash import Parts, tiled


@uncompiled
def ring_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    group: Group = None,
) -> Output:
    """Attention over the tokens of all ranks, each of which holds a part.

    Keys and values travel round, from each rank to the next. While a block
    of them is attended to, another is on its way. No rank ever holds more
    than its own, one that comes and one that goes, so that the length that
    fits grows with the number of ranks.

    `torch.compile` calls it as it is, between graphs; fullgraph=True refuses.

    In a layer that rotates, the rotation has to add the position of this
    rank's first token: ``lambda x, offset: rope(x, offset=first + offset)``.

    Args:
        q: this rank's queries, (..., n_q, d).
        k: its keys, (..., n_k, d). The tokens of one rank follow those of
            the rank before; they may be more or fewer.
        v: its values, (..., n_k, d_v).
        mask: True where this rank's queries may attend, to keys of all
            ranks: broadcasts to (..., n_q, n_k of all ranks together).
        bias: added to the scaled scores, likewise. Its gradient is what this
            rank's queries pass back to it.
        causal: hide from each query the keys after it; the last query of
            the last rank sits on its last key. That rank then has most to
            do, and the first least.
        group: the ranks; None for all there are.

    Returns:
        The output of this rank's queries, (..., n_q, d_v). A query that may
        see no key gets zeros. It can be differentiated once, not twice.

    Raises:
        ValueError: if shapes or types do not fit together, on a rank or
            between ranks, or if there is no process group.
        RuntimeError: if another rank does not answer.

    Reference: Liu et al. (2024), section 3.
    """
    check_call("ring_attention", q, k, v, causal)
    check_types(q, k, v, mask, bias)
    shapes = shapes_of_all("ring_attention", group, q, k, v, causal=causal)
    n_q = [of_q[-2] for of_q, _, _ in shapes]
    n_k = [of_k[-2] for _, of_k, _ in shapes]
    check_tables_fit(mask, bias, q, k, sum(n_k))
    batch = batch_shape(q, k, v)
    q, k, v = (x.expand(*batch, -1, -1) for x in (q, k, v))
    keys_values = torch.cat((k, v), dim=-1)  # to travel together
    ring = Ring(n_q, n_k, causal, group)
    return Joined.apply(q, keys_values, mask, bias, ring)


class Ring(NamedTuple):
    """The ranks in a ring: each sends to the next, the last to the first.

    What travels is blocks: the keys of one rank beside its values,
    (..., n_k, d + d_v), or the gradient of such a block.
    """

    n_q: list[int]  # of each rank
    n_k: list[int]
    causal: bool
    group: Group

    def blocks(self, mine: Tensor) -> Iterator[tuple[int, Tensor]]:
        """The blocks of all ranks, each with the rank whose it is: first our
        own. While one is worked on, the next is on its way.
        """
        rank, ranks = place(self.group)
        block = mine
        for source in [(rank - step) % ranks for step in range(ranks)]:
            last = source == (rank + 1) % ranks
            hop = None if last else self.hop(block, source)
            yield source, block
            block = block if hop is None else hop.arrive()

    def hop(self, block: Tensor, source: int) -> "Hop":
        """Send a rank's block on, and get that of the rank before it."""
        rank, ranks = place(self.group)
        if ranks == 1:
            return Hop(block, block, [], self.group)
        n = self.n_k[(source - 1) % ranks]
        coming = block.new_empty(*block.shape[:-2], n, block.shape[-1])
        both = (
            (dist.isend, block, (rank + 1) % ranks),
            (dist.irecv, coming, (rank - 1) % ranks),
        )
        if block.is_meta:  # of which there is nothing to send
            return Hop(block, coming, [], self.group)
        with answers("ring_attention", self.group):
            works = dist.batch_isend_irecv(
                [
                    dist.P2POp(do, x, group=self.group, group_peer=peer)
                    for do, x, peer in both
                ]
            )
        return Hop(block, coming, works, self.group)

    def spans(self, source: int) -> tuple[range, range]:
        """Where this rank's queries are among all keys, and that rank's
        keys; the last query sits on the last key.
        """
        rank, _ = place(self.group)
        first = sum(self.n_k) - sum(self.n_q[rank:])
        start = sum(self.n_k[:source])
        i = range(first, first + self.n_q[rank])
        return i, range(start, start + self.n_k[source])

    def sees(self, source: int) -> bool:
        """Whether queries of this rank may see any key of that one."""
        i, j = self.spans(source)
        return not self.causal or j.start < i.stop

    def columns(self, table: Any, source: int) -> Any:
        """What a mask or bias says of the keys of that rank: a view."""
        if table is None or table.ndim == 0 or table.shape[-1] == 1:
            return table
        _, j = self.spans(source)
        return table[..., j.start : j.stop]

    def attend(
        self, source: int, q: Tensor, block: Tensor, mask: Mask, bias: Bias
    ) -> Parts:
        """The output for a block, and what is needed to join it to others: in
        float32 at least, so that only what is joined is rounded.
        """
        i, j = self.spans(source)
        diagonal = self.causal and i.stop == j.stop
        if self.causal and not diagonal and j.stop > i.start + 1:
            those = torch.arange(j.start, j.stop, device=q.device)
            now = torch.arange(i.start, i.stop, device=q.device)[:, None]
            mask = those <= now if mask is None else mask & (those <= now)
        q, k, v = widen(q, *block.tensor_split([q.shape[-1]], dim=-1))
        return tiled(q, k, v, mask, bias, diagonal)


class Hop(NamedTuple):
    """A block that is on its way, and one that is coming."""

    sent: Tensor  # kept until it is gone
    coming: Tensor
    works: list[dist.Work]
    group: Group

    def arrive(self) -> Tensor:
        """Wait for both."""
        with answers("ring_attention", self.group):
            for work in self.works:
                work.wait()
        return self.coming


class Joined(torch.autograd.Function):
    """Both passes: keys and values travel once round in each.

    On the way back, what is passed back to a block travels one rank behind
    it, which takes it home.
    """

    @staticmethod
    def forward(ctx: Any, q, keys_values, mask, bias, ring):
        """Join what the blocks bring, as if all had been there at once."""
        d_v = keys_values.shape[-1] - q.shape[-1]
        [output] = widen(q.new_zeros(*q.shape[:-1], d_v))
        top = output.new_full(q.shape[:-1], torch.finfo(output.dtype).min)
        total = torch.zeros_like(top)
        for source, block in ring.blocks(keys_values):
            if ring.sees(source):
                tables = (ring.columns(x, source) for x in (mask, bias))
                near = ring.attend(source, q, block, *tables)
                new_top = torch.maximum(top, near.top)
                before = total * (top - new_top).exp2()
                share = (near.top - new_top).exp2() * near.total
                top, total = new_top, before + share
                total.masked_fill_(total == 0, 1.0)  # nothing seen so far
                # Averaged as they come: a sum of what is large overflows.
                output = output * before.div_(total)[..., None]
                output += near.output * share.div_(total)[..., None]
        total.masked_fill_(total == 0, 1.0)
        # As it is, not rounded: two terms of the way back nearly cancel.
        ctx.save_for_backward(q, keys_values, mask, bias, output, top, total)
        ctx.ring = ring
        return output.to(q.dtype)

    @staticmethod
    def backward(ctx: Any, grad):
        """Send the blocks round once more, and their gradients behind.

        A query that is spoilt, or sees what is, passes nothing back.
        """
        check_once("ring_attention", grad)
        q, keys_values, mask, bias, output, *sums = ctx.saved_tensors
        ring, learned = ctx.ring, ctx.needs_input_grad[3]
        [grad_q] = widen(torch.zeros_like(q))
        [grad_bias] = widen(torch.zeros_like(bias)) if learned else [None]
        [grad] = widen(grad)
        lost = ~output.isfinite().all(dim=-1)
        grad = grad.masked_fill(lost[..., None], 0)
        dots = (grad * output).sum(dim=-1).masked_fill(lost, 0)
        home: Any = None
        for source, block in ring.blocks(keys_values):
            [grad_block] = widen(torch.zeros_like(block))
            if ring.sees(source):
                here = ring.columns(grad_bias, source)
                into = [grad_q, grad_block, *([here] if learned else [])]
                tables = (ring.columns(x, source) for x in (mask, bias))
                given = [q, block, *tables]
                passed = pass_back(ring, source, given, grad, dots, *sums)
                for x, more in zip(into, passed, strict=False):
                    x += more
            if home is not None:
                grad_block += home.arrive()
            home = ring.hop(grad_block, source)
        grad_block = home.arrive().to(keys_values.dtype)
        if grad_bias is not None:
            grad_bias = grad_bias.to(bias.dtype)
        return grad_q.to(q.dtype), grad_block, None, grad_bias, None


def pass_back(
    ring: Ring, source: int, given: list, grad, dots, top, total
) -> tuple[Tensor, ...]:
    """What one block passes back to q, to itself, and to a bias if any.

    The joined output is the sum of the blocks' outputs, each times its
    share; and the share depends on the block's own log-sum-exp.
    """
    q, block, mask, bias = [x if x is None else x.detach() for x in given]
    # Widened here: what is passed back to it is added to that of others.
    q, block, bias = widen(q, block, bias)
    inputs = [x.requires_grad_() for x in (q, block, bias) if x is not None]
    with torch.enable_grad():
        near = ring.attend(source, q, block, mask, bias)
    part = (near.top - top).exp2() * near.total / total
    part = part.masked_fill(~part.isfinite(), 0)  # of one that is spoilt
    grad_near = grad * part[..., None]
    seen = near.output.detach()
    seen = seen.masked_fill(~seen.isfinite(), 0)
    grad_sums = (grad_near * seen).sum(-1) - dots * part
    return torch.autograd.grad(
        (near.output, near.log_sum), inputs, (grad_near, grad_sums)
    )
