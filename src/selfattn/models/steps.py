"""Steps: what is asked of the logits that a text goes on by.

Whoever writes a step of their own may forget a row, return a loss, or have
divided by zero; the largest of such logits would be a token all the same.
"""

from typing import Any

import torch
from torch import Tensor

from selfattn.called import check_called
from selfattn.checks import (
    are_at_hand,
    check_floats,
    check_places,
    check_whole,
)
from selfattn.entering import check_four_axes
from selfattn.multihead import KeysValues
from selfattn.signatures import INTEGERS, is_plain_tensor, shown

MOST = 2**24  # tokens among which PyTorch draws
# Logits that are further apart than a type tells, over a temperature that is
# at most this share of it, differ by 1000 or more: the lower one is never
# drawn, though the difference be infinite.
FAR = 1e-3


def answered(answer: Any, n_rows: int, stop: int | None) -> tuple[Tensor, Any]:
    """What a step returned, if it is logits for each row and a cache.

    Args:
        answer: what it returned.
        n_rows: how many texts it was asked about.
        stop: the token that ends a text, if one does.

    Raises:
        TypeError: if it is no pair of logits and a cache, or a number is none.
        ValueError: if the logits are others, or cannot be ranked.
    """
    check_whole(n_rows=n_rows, **({} if stop is None else {"stop": stop}))
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise TypeError(
            "a step must return logits and a cache, a tuple of two, but it "
            f"returned {shown(answer)}"
        )
    logits, cache = answer
    if not isinstance(logits, Tensor):
        raise TypeError(
            "the logits that a step returns must be a tensor, but it returned "
            f"{shown(logits)}"
        )
    check_floats("what a step returns as logits", logits)
    if logits.ndim != 2 or len(logits) != n_rows:
        raise ValueError(
            "a step must return floating-point logits (batch, n_tokens) of "
            f"n_rows={n_rows} rows, but they are {shown(logits)}"
        )
    check_ranked(logits)
    if stop is not None and stop >= logits.shape[-1]:
        raise ValueError(
            "stop must be one of the tokens that have logits, but stop="
            f"{stop} and logits is {tuple(logits.shape)}"
        )
    return logits, cache


def check_start(step: Any, prompt: Tensor) -> None:
    """Raise unless there is a token to go on from, and a step to do so."""
    check_called("step", step, "tokens", "cache")
    if prompt.shape[-1] == 0:
        raise ValueError(
            "a prompt must have at least 1 token to go on from, but it is "
            f"{tuple(prompt.shape)}"
        )


def check_ranked(logits: Tensor) -> None:
    """Raise unless each row of logits has a likeliest token.

    Raises:
        ValueError: if there is no token, or NaN or plus infinity, or nothing
            but minus infinity.
    """
    if logits.shape[-1] == 0:
        raise ValueError(
            "there must be a token to choose, but logits is "
            f"{tuple(logits.shape)}"
        )
    if not are_at_hand(logits):
        return
    # NaN is the largest of all, and whatever is below infinity is none.
    if not bool(logits.amax(dim=-1).isfinite().all()):
        raise ValueError(
            "a token can be chosen by logits without NaN and plus infinity, "
            "of which one at least is finite, but a row of these has none: "
            f"logits is {tuple(logits.shape)}"
        )


def check_chosen(chosen: Any, logits: Tensor) -> None:
    """Raise unless a token that has a logit was chosen for each row."""
    n_rows, n_tokens = logits.shape
    right = is_plain_tensor(chosen) and chosen.dtype in INTEGERS
    if not right or chosen.shape != (n_rows,):
        raise ValueError(
            f"choose must make whole numbers of shape ({n_rows},) of the "
            f"logits, a token for each row, but it made {shown(chosen)}"
        )
    check_places(**{"logits": logits, "what choose makes": chosen})
    if not are_at_hand(chosen):
        return
    if ((chosen < 0) | (chosen.long() >= n_tokens)).any():
        raise ValueError(
            f"choose must make tokens that have logits, 0 to {n_tokens - 1}, "
            f"but they go from {int(chosen.min())} to {int(chosen.max())}"
        )


def check_cache(cache: Any, n_rows: int) -> None:
    """Raise unless a cache can be cut into those of each row."""
    if cache is None:
        return
    listed = isinstance(cache, list | tuple)
    if not listed or not all(isinstance(one, KeysValues) for one in cache):
        raise TypeError(
            "beams can go on from a cache that is a list of KeysValues, but "
            f"this step's cache is {shown(cache)}"
        )
    for i, one in enumerate(cache):
        check_four_axes(f"cache[{i}]", one)
        if any(len(part) != n_rows for part in one):
            raise ValueError(
                f"a cache must be of the {n_rows} rows that the step was "
                f"asked about, but it holds {tuple(one.k.shape)}"
            )


def tempered(logits: Tensor, temperature: float) -> Tensor:
    """Logits, less the largest of their row, divided by a temperature.

    Else sound logits would be infinite at a small one; a temperature beyond
    what their type can hold is the smallest or largest that it can. They are
    float32 at least: at a large one, all would be alike in half precision.

    >>> tempered(torch.tensor([6e4, -6e4]).half(), 1e5)
    tensor([ 0.0000, -1.2000])
    """
    wide = torch.promote_types(logits.dtype, torch.float32)
    kept = torch.finfo(wide)
    temperature = min(max(temperature, kept.tiny), kept.max)
    logits = logits.to(wide)
    if temperature > FAR * kept.max:
        logits, temperature = logits / temperature, 1.0
    return (logits - logits.amax(dim=-1, keepdim=True)) / temperature
