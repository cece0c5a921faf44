"""What is asked of a decoder with a cache, chunk by chunk and in one pass.

Whatever the patient computes, its own pass over the whole text is the
reference for its steps. What is compared is therefore no output but what it
tells: which tokens came out right, and who saw whom.

The named mistakes are those of a single layer. Of a deep model with one of
them it may be found out that something is wrong, and not what: through many
layers, everybody sees farther.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.probes import Inputs, Probe, Sizes, numbers

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]
Chunks = tuple[int, ...]

EXACT = 1e-4  # another order of summation, through some layers of float32
COARSE = 1e-2  # as much as half precision loses


def written(step: Step, x: Tensor, chunks: Chunks) -> Tensor:
    """What a decoder says when it is given a text chunk by chunk."""
    cache, outputs = None, []
    for chunk in x.split(chunks, dim=1):
        output, cache = step(chunk, cache)
        outputs.append(output)
    return torch.cat(outputs, dim=1).detach()


def at_once(x: Tensor) -> Chunks:
    """The whole text as a single chunk."""
    return (x.shape[1],)


def compared(step: Step, x: Tensor, chunks: Chunks) -> Tensor:
    """1 where a token comes out as in one pass, (n,).

    Where it does not, 0; or ½, if no token is off by more than rounding in
    half precision makes.
    """
    whole = written(step, x, at_once(x))
    gap = (written(step, x, chunks) - whole).abs()
    gap = (gap / (1 + whole.abs())).amax(dim=(0, 2))
    return (gap < EXACT).double().clamp(min=0.5 * bool(gap.max() < COARSE))


def after_another_text(step: Step, x: Tensor, chunks: Chunks) -> Tensor:
    """`compared`, when another text was written before."""
    written(step, changed(x, slice(None)), chunks)
    return compared(step, x, chunks)


def of_one_word(step: Step, x: Tensor, chunks: Chunks) -> Tensor:
    """`compared`, for a text that says the same word again and again.

    All values are alike there, so that wrong positions do not show in one
    layer; wrong keys and values do.
    """
    return compared(step, x[:, :1].expand_as(x).clone(), chunks)


def sight(step: Step, x: Tensor, chunks: Chunks) -> Tensor:
    """Who sees whom in steps, beside one pass, (n, n).

    0 as in one pass; 1 a query sees what it does not see there; -1 it does
    not see what it does see there.
    """
    stepwise = influence(step, x, chunks)
    return stepwise.double() - influence(step, x, at_once(x)).double()


def foresight(step: Step, x: Tensor, chunks: Chunks) -> Tensor:
    """How many tokens see a later one, even in one pass."""
    return influence(step, x, at_once(x)).triu(1).sum().double()


def influence(step: Step, x: Tensor, chunks: Chunks) -> Tensor:
    """Which output moves (a row) when which token changes (a column)."""
    before = written(step, x, chunks)
    columns = [
        moved(before, written(step, changed(x, j), chunks)).any(dim=0)
        for j in range(x.shape[1])
    ]
    return torch.stack(columns, dim=1)


def across_texts(step: Step, x: Tensor, chunks: Chunks) -> Tensor:
    """Which outputs of other texts move when the first text changes."""
    other = x.clone()
    other[:1] = changed(x[:1], slice(None))
    pair = written(step, x, chunks), written(step, other, chunks)
    return moved(*pair)[1:].any(dim=0).double()


def order(step: Step, x: Tensor, chunks: Chunks) -> Tensor:
    """Whether the order of the first tokens tells in steps and in one pass."""
    other = x.clone()
    other[:, :3] = x[:, [1, 2, 0]]
    tells = [
        moved(written(step, x, c), written(step, other, c))[:, -1].any()
        for c in (chunks, at_once(x))
    ]
    return (tells[0] == tells[1]).double()


def moved(before: Tensor, after: Tensor) -> Tensor:
    """Which outputs are other ones, (batch, n)."""
    gap = (before - after).abs() / (1 + before.abs())
    return gap.amax(dim=-1) > EXACT / 10


def changed(x: Tensor, j: int | slice) -> Tensor:
    """Another token at position j: the next word, or the opposite vector."""
    other = x.clone()
    other[:, j] = -x[:, j] if x.is_floating_point() else 1 - x[:, j]
    return other


def words(sizes: Sizes) -> Tensor:
    """Two texts of the two words 0 and 1, (2, 5)."""
    return text(None)


def text(d_model: int | None, n: int = 5) -> Tensor:
    """Two texts of some tokens: vectors, or words if there is no width."""
    if d_model is None:
        words = torch.tensor([[0, 1, 1, 0, 1], [1, 0, 0, 1, 1]])
        return words.repeat(1, n)[:, :n]
    return numbers(2, n, d_model, seed=2)


def probe_of(
    claim: str,
    look: Callable[[Step, Tensor, Chunks], Tensor],
    chunks: Chunks,
    d_model: int | None,
) -> Probe:
    """A probe that looks on while a text of five is written in chunks."""

    def experiment(step: Step, inputs: Inputs) -> Tensor:
        return look(step, inputs["x"], chunks)

    if d_model is None:
        return Probe(claim, {"x": words}, experiment=experiment)
    sizes = {"n": 5, "d": d_model}
    return Probe(
        claim,
        {"x": "batch n d"},
        sizes,
        fixed=("d",),
        experiment=experiment,
    )


def of_width(d_model: int | None) -> tuple[Probe, ...]:
    """All that is asked of a decoder of this width, or of words if None."""
    singly, mixed = (1,) * 5, (2, 1, 2)
    looks = (
        ("word by word it says what it says at once", compared, singly),
        ("chunk by chunk it says what it says at once", compared, mixed),
        ("a word said again and again is as at once", of_one_word, mixed),
        ("nobody sees the future", foresight, (5,)),
        ("word by word it sees what it sees at once", sight, singly),
        ("chunk by chunk it sees what it sees at once", sight, mixed),
        ("each text of a batch is for itself", across_texts, mixed),
        ("the order of what came before tells as at once", order, singly),
        ("a new text starts anew", after_another_text, mixed),
    )
    return tuple(
        probe_of(claim, look, chunks, d_model) for claim, look, chunks in looks
    )
