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
    """All tensors of a safetensors file but those that are no weights."""
    from safetensors.torch import load_file

    weights = load_file(path)
    return {n: w for n, w in weights.items() if not BUFFERS.search(n)}


def renamed(weights: Weights, names: Mapping[str, str]) -> Weights:
    """The same tensors under our names."""
    ours = {}
    for name, weight in weights.items():
        for theirs, mine in {**names, **NORMS}.items():
            name = re.sub(theirs, mine, name)
        ours[name] = weight
    return ours


def shape_of(name: str, weights: Weights, path: str | Path) -> torch.Size:
    """The shape of a weight that no such file can be without.

    Raises:
        ValueError: if it is not there.
    """
    if name not in weights:
        raise ValueError(
            f"a file must hold every weight of its model, but {path} has "
            f"nothing for {name}"
        )
    return weights[name].shape


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
