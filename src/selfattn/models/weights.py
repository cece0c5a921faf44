"""Weights: from the names and tensors of a file to those of a model.

Reading a file is renaming: each of its tensors becomes one of ours, and none
may be left over or missing.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]

NORMS = {  # older files say gamma and beta
    r"\bnorm\.(weight|gamma)$": "norm.gain",
    r"\bnorm\.(bias|beta)$": "norm.shift",
}
BUFFERS = re.compile(r"\.attn\.(masked_)?bias$|\.position_ids$")
# In older files: numbers that follow from others, and a table nobody reads.
UNUSED = re.compile(r"rotary_emb\.inv_freq|EncDecAttention\.relative_")
D_HEAD = 64  # in every size of GPT-2, BERT and ViT that was published


def read(path: str | Path) -> Weights:
    """All tensors of a safetensors file but those that are no weights.

    They are copies: what is written over the file later, or cut off it, is
    no longer the model's.

    Raises:
        ValueError: if it cannot be read as such a file, or if its weights
            are no floating-point numbers of one type.
    """
    from safetensors import SafetensorError, safe_open

    try:
        if not Path(path).is_file():  # a pipe would be waited for, and waited
            there = "what" if os.path.lexists(path) else "no such file"
            no = " is no file" if there == "what" else ""
            raise ValueError(
                f"weights are read from a safetensors file, but {path} cannot "
                f"be read as one: {there} is there{no}"
            )
        with safe_open(path, framework="pt") as file:
            names = [n for n in file.keys() if not BUFFERS.search(n)]  # noqa: SIM118
            weights = {n: file.get_tensor(n).clone() for n in names}
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"weights are read from a safetensors file, but {path} cannot be "
            f"read as one: {error}"
        ) from error
    check_type(used(weights), path)
    return weights


def used(weights: Weights) -> Weights:
    """Those of a file that are of use."""
    return {n: w for n, w in weights.items() if not UNUSED.search(n)}


def check_above(*, eps: float, base: float) -> None:
    """Raise unless roots can be taken, and angles be made."""
    if not 0 <= eps < math.inf:
        raise ValueError(
            f"eps must be a finite number of at least 0, but eps={eps}"
        )
    if not 0 < base < math.inf:
        raise ValueError(
            f"base must be a finite number above 0, but base={base}"
        )


def check_type(weights: Weights, path: str | Path) -> None:
    """Raise unless all are numbers of one type, with which one can count.

    Of floating-point numbers of one byte, PyTorch has no products.
    """
    kinds = {w.dtype: n for n, w in weights.items()}
    wide = [d.is_floating_point and d.itemsize > 1 for d in kinds]
    if len(kinds) > 1 or not all(wide):
        told = ", ".join(f"{n} of {d}" for d, n in kinds.items())
        raise ValueError(
            "the weights of a model must be floating-point numbers, of two "
            f"bytes at least and of one type, but {path} has {told}"
        )


@contextmanager
def telling(path: str | Path) -> Iterator[None]:
    """Have what is wrong with a model name the file that it is made of."""
    try:
        yield
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(
            f"a file must hold a model that can be made, but of {path} it "
            f"cannot: {error}"
        ) from error


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same; NaN, which equals nothing, is NaN."""
    return torch.equal(one.isnan(), other.isnan()) and torch.equal(
        one.nan_to_num(), other.nan_to_num()
    )


def renamed(
    weights: Weights, names: Mapping[str, str], path: str | Path
) -> Weights:
    """The same tensors under our names.

    Raises:
        ValueError: if one of ours is there under two names of theirs, with
            other numbers.
    """
    ours: Weights = {}
    for old, weight in weights.items():
        name, rules = old, 0
        for theirs, mine in {**names, **NORMS}.items():
            name, times = re.subn(theirs, mine, name)
            rules += times
        if not rules:  # it is none of theirs, though it might be ours
            name = f"their {old}"
        if name in ours and not same(ours[name], weight):
            raise ValueError(
                f"a file must hold each weight once, but {path} has two that "
                f"differ for {name}; one of them is {old}"
            )
        ours[name] = weight
    return ours


def read_as(path: str | Path, names: dict[str, str]) -> Weights:
    """The tensors of a file under our names, without those of no use."""
    return renamed(used(read(path)), names, path)


def shape_of(name: str, weights: Weights, path: str | Path) -> tuple[int, int]:
    """The shape of a matrix that no such file can be without.

    Raises:
        ValueError: if it is not there, or is no matrix, or an empty one.
    """
    found = tuple(weights[name].shape) if name in weights else None
    if found is None or len(found) != 2 or 0 in found:
        raise ValueError(
            "a file must hold every weight of its model, and this one as a "
            f"matrix that is not empty, but for {name} {path} has {found}"
        )
    return found


def has(part: str, weights: Weights) -> bool:
    """Whether the file holds this part of the model."""
    return any(name.startswith(f"{part}.") for name in weights)


def count_blocks(weights: Weights, prefix: str) -> int:
    """How many blocks the file has weights for."""
    tails = (n[len(prefix) :] for n in weights if n.startswith(prefix))
    return len({tail.partition(".")[0] for tail in tails})


def heads_for(d_model: int, n_heads: int | None, path: str | Path) -> int:
    """How many heads there are: as said, or as many as have 64 features.

    Raises:
        ValueError: if the model cannot be cut into so many.
    """
    n_heads = d_model // D_HEAD if n_heads is None else n_heads
    if n_heads < 1 or d_model % n_heads:
        raise ValueError(
            "n_heads must divide the width of the model, but the model in "
            f"{path} is {d_model} wide and n_heads={n_heads}"
        )
    return n_heads


def fill(model: nn.Module, weights: Weights, path: str | Path) -> None:
    """Put each weight where it belongs: none missing, none left, none bent.

    Raises:
        ValueError: if the file does not fit the model.
    """
    wanted = {n: tuple(w.shape) for n, w in model.state_dict().items()}
    found = {n: tuple(w.shape) for n, w in weights.items()}
    if wrong := sorted(wanted.items() ^ found.items()):
        name = wrong[0][0]
        raise ValueError(
            "a file must hold every weight of its model and no other, but "
            f"for {name} the model wants {wanted.get(name)} and {path} has "
            f"{found.get(name)}"
        )
    model.load_state_dict(weights, assign=True)


def tie(head: nn.Linear, embed: Any) -> None:
    """Make the scores and the embedding one table again, if they agree."""
    if same(head.weight, embed.tokens.weight):
        head.weight = embed.tokens.weight
