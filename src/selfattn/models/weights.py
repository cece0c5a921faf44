"""Weights: from the names and tensors of a file to those of a model."""

import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from selfattn.models.embedding import Embedding

Weights = dict[str, Tensor]

NORMS = {  # older files say gamma and beta
    r"\bnorm\.(weight|gamma)$": "norm.gain",
    r"\bnorm\.(bias|beta)$": "norm.shift",
}
BUFFERS = re.compile(r"\.attn\.(masked_)?bias$|\.position_ids$")


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
        with safe_open(path, framework="pt") as file:
            names = [n for n in file.keys() if not BUFFERS.search(n)]  # noqa: SIM118
            weights = {n: file.get_tensor(n).clone() for n in names}
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"weights are read from a safetensors file, but {path} cannot be "
            f"read as one: {error}"
        ) from error
    check_type(weights, path)
    return weights


def check_type(weights: Weights, path: str | Path) -> None:
    """Raise unless all are floating-point numbers of one type."""
    kinds = {w.dtype: n for n, w in weights.items()}
    if len(kinds) > 1 or not all(d.is_floating_point for d in kinds):
        told = ", ".join(f"{n} of {d}" for d, n in kinds.items())
        raise ValueError(
            "the weights of a model must be floating-point numbers of one "
            f"type, but {path} has {told}"
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
        name = old
        for theirs, mine in {**names, **NORMS}.items():
            name = re.sub(theirs, mine, name)
        if name in ours and not torch.equal(ours[name], weight):
            raise ValueError(
                f"a file must hold each weight once, but {path} has two that "
                f"differ for {name}; one of them is {old}"
            )
        ours[name] = weight
    return ours


def shape_of(name: str, weights: Weights, path: str | Path) -> tuple[int, int]:
    """The shape of a matrix that no such file can be without.

    Raises:
        ValueError: if it is not there, or is no matrix.
    """
    found = tuple(weights[name].shape) if name in weights else None
    if found is None or len(found) != 2:
        raise ValueError(
            "a file must hold every weight of its model, and this one as a "
            f"matrix, but for {name} {path} has {found}"
        )
    return found


def has(part: str, weights: Weights) -> bool:
    """Whether the file holds this part of the model."""
    return any(name.startswith(f"{part}.") for name in weights)


def count_blocks(weights: Weights, prefix: str) -> int:
    """How many blocks the file has weights for."""
    tails = (n[len(prefix) :] for n in weights if n.startswith(prefix))
    return len({tail.partition(".")[0] for tail in tails})


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


def tie(head: nn.Linear, embed: Embedding) -> None:
    """Make the scores and the embedding one table again, if they agree."""
    if torch.equal(head.weight, embed.tokens.weight):
        head.weight = embed.tokens.weight
