"""The lab of the chapter on blocks: what the parts cost, and who hears whom.

An encoder block reads a source, a decoder block writes a target. The reader
chooses which parts the blocks have and which of the three masks are on, and
sees the shapes on the way, the parameters, and which output moves when one
token is changed: what it should not hear is a leak.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.park_miller import fixed_numbers
from selfattn.labs.machinery.settings import Choice, Flag, Whole
from selfattn.layers import FeedForward, LayerNorm
from selfattn.looking_inside import record_weights

SOURCE = ["the", "cat", "sat", "on", "it"]
TARGET = ["<s>", "die", "Katze", "saß", "da"]
WIDER = 4  # d_ff over d_model
HEARD = 1e-9  # what moves less has not heard


class Seen(NamedTuple):
    """What the lab shows."""

    moves: list[list[float]]  # of each target output, by each token changed
    future: int  # cells by which an output hears a later target token
    padding: int  # cells by which an output hears a padded source token
    parameters: dict[str, int]
    shapes: dict[str, list[int]]


class BlocksLab(Lab):
    """An encoder block and a decoder block with fixed weights.

    Attributes:
        d_model: features of a token.
        n_heads: heads of every attention; they divide d_model.
        norm: "pre", "post" or "none".
        feed_forward: whether the blocks have a network that says anything.
        cross: whether the decoder block asks the memory.
        m: how many source tokens there are.
        padded: how many of these, at the end, are padding.
        n: how many target tokens there are.
        causal: whether a target token is kept from hearing later ones.
        mask_source: whether padding is hidden in the encoder.
        mask_memory: whether padding is hidden in cross-attention.
    """

    d_model = Choice(8, [4, 8, 12])
    n_heads = Choice(2, [1, 2, 4], divides="d_model")
    norm = Choice("pre", ["pre", "post", "none"])
    feed_forward = Flag(True)
    cross = Flag(True)
    m = Whole(4, 1, len(SOURCE))
    padded = Whole(1, 0, len(SOURCE) - 1, of="m", plus=-1)
    n = Whole(4, 1, len(TARGET))
    causal = Flag(True)
    mask_source = Flag(True)
    mask_memory = Flag(True)

    def seen(self) -> Seen:
        """What the page shows, computed by the package in float64."""
        return seen(**self.values())

    def changed(self) -> list[str]:
        """The tokens that are changed, the source's first."""
        real = int(self.m) - int(self.padded)
        source = [*SOURCE[:real], *["pad"] * int(self.padded)]
        return source + TARGET[: int(self.n)]

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.seen()
        heard = sum(x > HEARD for row in now.moves for x in row)
        return (
            f"A table of {self.n} outputs by {self.m + self.n} tokens, of "
            f"which each cell tells whether the output moves when the token "
            f"is changed: {heard} do. {now.future} cells hear a later "
            f"target token, {now.padding} hear padding. The encoder block has "
            f"{now.parameters['encoder block']:,} parameters, the decoder "
            f"block {now.parameters['decoder block']:,}."
        )

    def figure(self) -> Figure:
        """The table, as it is now."""
        figure = Figure(figsize=(5.4, 2.9), layout="constrained")
        ax = figure.subplots()
        table = [[x > HEARD for x in row] for row in self.seen().moves]
        ax.imshow(table, cmap="Greys", vmin=0, vmax=2)
        ax.set_xticks(range(self.m + self.n), self.changed(), rotation=60)
        ax.set_yticks(range(self.n), TARGET[: int(self.n)])
        ax.axvline(int(self.m) - 0.5, color="black", lw=1)
        ax.set(xlabel="token that is changed", ylabel="output that moves")
        return figure


class Silent(nn.Module):
    """A network that adds nothing."""

    def forward(self, x: Tensor) -> Tensor:
        """Zeros, (…, d_model) -> (…, d_model)."""
        return torch.zeros_like(x)


@cache  # nobody may change what it returns
def both_blocks(
    d_model: int, n_heads: int, norm: str, feed_forward: bool, cross: bool
) -> tuple[EncoderBlock, nn.Module]:
    """The encoder's block and the decoder's, with fixed weights, float64."""
    options: dict[str, Any] = {
        "pre": norm != "post",
        "norm": (lambda d: nn.Identity()) if norm == "none" else LayerNorm,
        "feed_forward": FeedForward
        if feed_forward
        else (lambda d, d_ff: Silent()),
    }
    sizes = d_model, n_heads, WIDER * d_model
    reads = EncoderBlock(*sizes, **options)
    writes = (DecoderBlock if cross else EncoderBlock)(*sizes, **options)
    for place, block in enumerate((reads, writes)):
        fill(block, 7919 * (place + 1) + 104729 * 3)
    return reads.eval(), writes.eval()


def fill(block: nn.Module, start: int) -> None:
    """Fixed matrices, of variance one over their rows; no biases."""
    block.double().requires_grad_(requires_grad=False)
    numbers = iter(fixed_numbers(start, 16 * 12 * 12))
    parts = [block.attention]
    parts += [block.cross] if isinstance(block, DecoderBlock) else []
    maps = [getattr(p, f"W_{name}") for p in parts for name in "qkvo"]
    if isinstance(block.feed_forward, FeedForward):
        maps += [block.feed_forward.W_in, block.feed_forward.W_out]
    for layer in maps:
        columns, rows = layer.weight.shape
        some = list(islice(numbers, rows * columns))
        table = torch.tensor(some, dtype=torch.float64)
        layer.weight.copy_(table.reshape(rows, columns).T / rows**0.5)
        if layer.bias is not None:
            layer.bias.zero_()


def tokens(start: int, count: int, d_model: int) -> Tensor:
    """Fixed vectors, (count, d_model)."""
    numbers = fixed_numbers(start, count * d_model)
    return torch.tensor(numbers, dtype=torch.float64).reshape(count, d_model)


def seen(**values: Any) -> Seen:
    """Run the blocks, and once more for every token that is changed.

    The arguments are the lab's settings. In the batch, the first is as it
    is; in the others the first feature of one token is one more.
    """
    m, padded, n = (values[name] for name in ("m", "padded", "n"))
    parts = ("d_model", "n_heads", "norm", "feed_forward", "cross")
    reads, writes = both_blocks(*(values[name] for name in parts))
    d_model = values["d_model"]
    both = torch.cat((tokens(31, m, d_model), tokens(77, n, d_model)))
    batch = both.repeat(1 + m + n, 1, 1)
    places = torch.arange(m + n)
    batch[1 + places, places, 0] += 1
    shapes, output = run(reads, writes, batch.split((m, n), dim=1), values)
    moved = (output[1:] - output[0]).abs().amax(dim=-1).T
    heard = moved > HEARD
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    return Seen(
        moved.tolist(),
        int((heard[:, m:] & later).sum()),
        int(heard[:, m - padded : m].sum()),
        counts(reads, writes),
        {name: [1, *tensor.shape[1:]] for name, tensor in shapes.items()},
    )


def run(
    reads: nn.Module,
    writes: nn.Module,
    texts: Sequence[Tensor],
    values: Mapping[str, Any],
) -> tuple[dict[str, Tensor], Tensor]:
    """What is made on the way, by name, and the decoder's output."""
    source, target = texts
    cross = values["cross"]
    real = torch.arange(values["m"]) < values["m"] - values["padded"]
    real = real[None, None, None]
    with record_weights(reads) as encoder:
        memory = reads(source, mask=real if values["mask_source"] else None)
    asked = {"memory_mask": real if values["mask_memory"] else None}
    with record_weights(writes) as decoder:
        given = (target, memory) if cross else (target,)
        options = {"causal": values["causal"]} | (asked if cross else {})
        output = writes(*given, **options)
    made = {"source": source, "weights, encoder": encoder[0]}
    made |= {"memory": memory, "target": target}
    made["weights, decoder"] = decoder[0]
    if cross:
        made["weights, cross"] = decoder[1]
    return made | {"output": output}, output


def counts(reads: nn.Module, writes: nn.Module) -> dict[str, int]:
    """How many parameters the parts have."""

    def size(module: nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    norms = (m for m in writes.modules() if isinstance(m, LayerNorm))
    return {
        "encoder block": size(reads),
        "decoder block": size(writes),
        "its self-attention": size(writes.attention),
        "its cross-attention": size(getattr(writes, "cross", Silent())),
        "its network": size(writes.feed_forward),
        "its norms": sum(size(norm) for norm in norms),
    }
