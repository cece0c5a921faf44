"""Hostile files: cut short, of other things, overwritten under a model."""

import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import save_file, save_model
from torch import Tensor, nn

from hostile.scenes import LAYOUTS, a_file, folder
from hostile.verdicts import Trial
from selfattn.measurements import measured
from selfattn.models import (
    load_bert,
    load_gpt2,
    load_llama,
    load_t5,
    load_vit,
)

Change = Callable[[dict[str, Tensor], Random], dict[str, Tensor]]
LOADERS = {
    "gpt2": partial(load_gpt2, n_heads=2),
    "bert": partial(load_bert, n_heads=2),
    "llama": partial(load_llama, n_heads=2),
    "t5": load_t5,
    "vit": partial(load_vit, n_heads=2),
}
# The same weight under another name that its loader knows as well.
ALIASES = {
    "wte": "transformer.wte",
    "h.": "transformer.h.",
    "encoder.layer.": "bert.encoder.layer.",
    "model.norm.": "norm.",
    "model.layers.": "blocks.",
    "shared.": "decoder.embed_tokens.",
    "vit.layers.": "vit.encoder.layer.",
}
TIED = "lm_head.weight"  # a file without it means the embedding's table


def trials(rng: Random) -> Iterator[Trial]:
    """For every loader, and for the ledgers of measurements."""
    for model, load in LOADERS.items():
        yield from damaged(model, load, rng)
        yield from changed(model, load, LAYOUTS[model](), rng)
        yield from owned(model, load)
    for name in ("", "nothing", "../measurements/bench", "a\0b", "x" * 5000):
        yield refused(f"measured({name[:9]!r})", partial(measured, name))


def refused(detail: str, run: Callable[[], Any], *names: str) -> Trial:
    """What must not be read, in an error that names the file."""
    return Trial(
        "a file", detail, run, None, names=("path", "chapter", "file", *names)
    )


def damaged(
    model: str, load: Callable[..., nn.Module], rng: Random
) -> Iterator[Trial]:
    """Files that are no such files."""
    whole = a_file(model).read_bytes()
    cuts = [0, 1, 7, 8, 9, len(whole) // 2, len(whole) - 1]
    cuts += [rng.randrange(len(whole)) for _ in range(6)]
    texts = {f"cut at {n}": whole[:n] for n in cuts}
    size = int.from_bytes(whole[:8], "little")
    texts |= {
        "longer": whole + b"more",
        "a huge header": (2**62).to_bytes(8, "little") + whole[8:],
        "no header": (0).to_bytes(8, "little") + whole[8:],
        "no JSON": whole[:8] + b"}" * size + whole[8 + size :],
        "not UTF-8": whole[:8] + b"\xff" * size + whole[8 + size :],
        "a pickle": b"\x80\x04N.",
        "text": b"these are no weights",
    }
    for name, content in texts.items():
        path = folder() / f"{model}_{name}.safetensors".replace(" ", "_")
        path.write_bytes(content)
        yield of_path(f"{model}: {name}", load, path)
    missing = folder() / "nowhere" / "model.safetensors"
    yield of_path(f"{model}: missing", load, missing)
    yield of_path(f"{model}: a folder", load, folder())


def of_path(detail: str, load: Callable[..., nn.Module], path: Path) -> Trial:
    """A refusal that names the file."""

    def run() -> Any:
        try:
            return load(path)
        except (ValueError, TypeError) as error:
            if path.name not in str(error):
                raise KeyError("the file is not named") from error
            raise

    return refused(detail, run, str(path), path.name)


def without(weights: dict[str, Tensor], rng: Random) -> dict[str, Tensor]:
    """One weight is missing."""
    name = rng.choice(sorted({*weights} - {TIED}))
    return {n: w for n, w in weights.items() if n != name}


def transposed(weights: dict[str, Tensor], rng: Random) -> dict[str, Tensor]:
    """One weight has another shape; patches may, and are then narrower."""
    name = rng.choice(sorted(n for n, w in weights.items() if w.ndim < 4))
    return weights | {name: weights[name][..., :-1].contiguous()}


def one_more(weights: dict[str, Tensor], rng: Random) -> dict[str, Tensor]:
    """A weight of nothing."""
    return weights | {f"extra.{rng.randrange(9)}.weight": torch.ones(2)}


def one_flat(weights: dict[str, Tensor], rng: Random) -> dict[str, Tensor]:
    """A weight of other axes."""
    name = rng.choice(sorted(weights))
    return weights | {name: weights[name].flatten()[:1].clone()}


def no_number(weights: dict[str, Tensor], rng: Random) -> dict[str, Tensor]:
    """A weight of whole numbers."""
    name = rng.choice(sorted(weights))
    return weights | {name: weights[name].long()}


def gap(weights: dict[str, Tensor], rng: Random) -> dict[str, Tensor]:
    """The last block of a stack is called 5."""
    last = re.compile(r"((?:^|\.)(?:h|layer|layers|block)\.)[01](?=\.)")
    numbers = {n: last.search(n) for n in weights}
    most = max(found[0] for found in numbers.values() if found)
    return {n.replace(most, f"{most[:-1]}5"): w for n, w in weights.items()}


def twice(weights: dict[str, Tensor], rng: Random) -> dict[str, Tensor]:
    """One weight is there under two of its names, and differs."""
    names = [
        (name, other + name.removeprefix(start))
        for name in sorted(weights)
        for start, other in ALIASES.items()
        if name.startswith(start)
    ]
    name, alias = rng.choice(names)
    return weights | {alias: weights[name] + 1}


def nothing(weights: dict[str, Tensor], rng: Random) -> dict[str, Tensor]:
    """No weights at all."""
    return {}


CHANGES: tuple[Change, ...] = (
    *(without, without, without, transposed, transposed, transposed),
    *(one_more, one_flat, one_flat, no_number, gap, twice, twice, nothing),
)


def changed(
    model: str,
    load: Callable[..., nn.Module],
    weights: dict[str, Tensor],
    rng: Random,
) -> Iterator[Trial]:
    """Files of other weights."""
    for i, change in enumerate(CHANGES):
        path = folder() / f"{model}_changed_{i}.safetensors"
        save_file(change(weights, rng), path)
        yield of_path(f"{model}: {change.__name__}", load, path)


def owned(model: str, load: Callable[..., nn.Module]) -> Iterator[Trial]:
    """The model keeps its weights, whatever becomes of the file."""

    def then(spoil: Callable[[Path], Any]) -> Any:
        path = folder() / f"{model}_owned.safetensors"
        shutil.copy(a_file(model), path)
        loaded = load(path)
        spoil(path)
        return [w.clone() for w in loaded.state_dict().values()]

    def kept() -> Any:
        return [*load(a_file(model)).state_dict().values()]

    def overwrite(path: Path) -> None:
        with path.open("r+b") as file:
            size = path.stat().st_size
            file.seek(size // 2)
            file.write(b"\0" * (size - size // 2))

    def remove(path: Path) -> None:
        path.unlink()

    def saved(path: Path) -> None:
        save_model(load(path), str(folder() / "again"))

    for spoil in (overwrite, remove, saved):
        yield Trial(
            "a file",
            f"{model}: {spoil.__name__} after loading",
            partial(then, spoil),
            kept,
            dtype=torch.float32,
        )
