"""Functions that make padding masks, of lengths or of tokens."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Fact, Kind
from selfattn.doctor.kinds.mask_meanings import OF_A_MAKER, as_ours
from selfattn.doctor.patient import Facts, parameters
from selfattn.doctor.probes import Probe
from selfattn.masks import padding_mask

PAD = 0


def of(lengths: list[int], n: int) -> dict[str, Callable[..., object]]:
    """Lengths and width as the inputs of a probe."""
    return {"lengths": lambda _: torch.tensor(lengths), "n": lambda _: n}


REFERENCE = Exercise(
    "padding-mask",
    asks="True for the real tokens of each text, (batch, 1, 1, n)",
    solution=padding_mask,
    probes=(
        Probe("of each text the first tokens are real", of([3, 5, 2], 5)),
        Probe(
            "it is as wide as the batch, not as its longest text",
            of([2, 1], 7),
        ),
        Probe("texts may all be full", of([3, 3], 3)),
        Probe("one text alone will do", of([2], 3)),
        Probe("as many texts as tokens are no harder", of([2, 1, 3], 3)),
        Probe("a text may be empty", of([2, 0], 3), needs=("empty",)),
    ),
    optional={"empty": "texts without a token"},
)


def table(lengths: Tensor, n: int) -> Tensor:
    """The mask as a table, (batch, n)."""
    return padding_mask(lengths, n)[:, 0, 0]


@REFERENCE.mistake
def upside_down(lengths, n):
    """Padding is seen, and text is not.

    Cause: True is where padding is.
    Cure: Turn it round, with ~ ; or say mask="block", if that is meant, as
        key_padding_mask of PyTorch's layers does.
    """
    return ~padding_mask(lengths, n)


@REFERENCE.mistake
def one_too_many(lengths, n):
    """The first padded position is seen.

    Cause: Positions from 0 are compared with <= .
    Cure: position < length.
    """
    return padding_mask((lengths + 1).clamp(max=n), n)


@REFERENCE.mistake
def one_too_few(lengths, n):
    """The last token of each text is hidden.

    Cause: position < length - 1, or the end of the text counts as padding.
    Cure: position < length.
    """
    return padding_mask((lengths - 1).clamp(min=0), n)


@REFERENCE.mistake
def padded_on_the_other_side(lengths, n):
    """The beginning of short texts is hidden, and their padding seen.

    Cause: The mask is for texts that stand at the right end of their rows.
    Cure: Text first, padding last: position < length.
    """
    return padding_mask(lengths, n).flip(-1)


@REFERENCE.mistake
def first_text_for_all(lengths, n):
    """All texts are as long as the first.

    Cause: One row is made, and it broadcasts over the batch.
    Cure: lengths[:, None], so that each text has its own row.
    """
    return padding_mask(lengths[:1].expand_as(lengths), n)


@REFERENCE.mistake
def nothing_hidden(lengths, n):
    """All padding is seen.

    Cause: The mask is all True: it was made from the padded width.
    Cure: From the lengths before padding.
    """
    return padding_mask(torch.full_like(lengths, n), n)


@REFERENCE.mistake
def as_wide_as_the_longest(lengths, n):
    """It does not fit the scores if the batch is padded farther.

    Cause: Its width is lengths.max().
    Cure: Its width is that of the batch.
    """
    longest = int(lengths.max())
    return padding_mask(lengths, max(longest, 1))


@REFERENCE.mistake
def longest_for_all(lengths, n):
    """All texts are as long as the longest.

    Cause: lengths.max() instead of each text's own length.
    Cure: lengths[:, None].
    """
    return padding_mask(lengths.max().expand_as(lengths), n)


@REFERENCE.mistake
def queries_hidden_too(lengths, n):
    """Padded queries have empty rows: NaN, in many a softmax.

    Cause: The mask is laid over queries and keys.
    Cure: Hide keys alone; what padded queries say is thrown away anyway.
    Thread: https://github.com/pytorch/pytorch/issues/41508
    """
    keys = padding_mask(lengths, n)
    return keys & keys.mT


@REFERENCE.mistake
def queries_instead_of_keys(lengths, n):
    """Padded keys are seen by all, and padded queries see nothing.

    Cause: The axes are (batch, 1, n, 1).
    Cure: (batch, 1, 1, n): keys are the last axis.
    """
    return padding_mask(lengths, n).mT


@REFERENCE.mistake
def without_axes_for_heads_and_queries(lengths, n):
    """With scores of four axes it fails, or hides what it should not.

    Cause: (batch, n) broadcasts as (queries, keys).
    Cure: [:, None, None, :].
    """
    return table(lengths, n)


@REFERENCE.mistake
def without_an_axis_for_heads(lengths, n):
    """As many texts as heads, and it hides the wrong ones without a word.

    Cause: (batch, 1, n) broadcasts as (heads, queries, keys).
    Cure: [:, None, None, :].
    """
    return table(lengths, n)[:, None]


@REFERENCE.mistake
def texts_last(lengths, n):
    """A column is a text.

    Cause: position[:, None] < lengths, as for tokens in (n, batch).
    Cure: lengths[:, None], position along the last axis.
    """
    return table(lengths, n).mT[:, None, None]


@REFERENCE.mistake
def numbers_not_booleans(lengths, n):
    """The pattern is right, but it is made of ones and zeros.

    Cause: It is a count, or was turned into floats.
    Cure: dtype=torch.bool. Of numbers nobody can tell what they mean.
    """
    return padding_mask(lengths, n).float()


@REFERENCE.mistake
def numbers_to_add(lengths, n):
    """The pattern is right, but it is one to add to scores.

    Cause: It holds 0 and minus infinity.
    Cure: Booleans are asked for; or say mask="add".
    """
    keep = padding_mask(lengths, n)
    return torch.zeros(keep.shape).masked_fill(~keep, -torch.inf)


# They live here, and not among the exercises of the chapter on masks.
REFERENCE.mistakes[:] = [
    dataclasses.replace(mistake, chapter="masks")
    for mistake in REFERENCE.mistakes
]


def look(thing: Any, said: Facts) -> dict[str, Any]:
    """Whether it takes tokens or lengths, by the name of its first."""
    names = parameters(thing)
    if not names:
        return {}
    seen: dict[str, Any] = {"arguments": len(names)}
    words = ("tok", "seq", "ids", "src", "text", "input", "x", "batch")
    if any(names[0].lower().startswith(word) for word in words):
        seen["of"] = "tokens"
    if "len" in names[0].lower():
        seen["of"] = "lengths"
    return seen


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with lengths or tokens; give its mask our axes and meaning."""

    def padding(lengths: Tensor, n: int) -> object:
        given: tuple[Any, ...] = (lengths, n)
        if facts["of"] == "tokens":
            pad = facts.get("pad", PAD)
            real = torch.arange(n) < lengths[:, None]
            tokens = torch.arange(n) % 5 + pad + 1
            given = (tokens.where(real, torch.tensor(pad)), pad)
        mask = thing(*given[: facts.get("arguments", 2)])
        if isinstance(mask, Tensor):
            if facts["axes"] == "BN" and mask.ndim == 2:
                mask = mask[:, None, None]
            if facts["axes"] == "B1N" and mask.ndim == 3:
                mask = mask[:, None]
        return as_ours(mask, facts["mask"])

    return padding


KIND = Kind(
    "padding-mask",
    asks="of lengths and n, or of tokens, which tokens are real",
    exercise=lambda thing, facts: REFERENCE,
    facts={
        "mask": Fact("what the mask says", OF_A_MAKER),
        "axes": Fact(
            "the axes of the mask",
            {
                "B11N": "batch, heads, queries, keys",
                "B1N": "batch, queries, keys",
                "BN": "batch, keys",
            },
        ),
        "of": Fact(
            "what it is made of",
            {"lengths": "lengths and n", "tokens": "tokens, and the padding"},
        ),
        "pad": Fact("the number that stands for padding; 0 when not said"),
        "arguments": Fact("how many arguments it takes, 1 or 2"),
    },
    look=look,
    adapt=adapt,
)
