"""How a whole model is called: by whatever names, with or without a cache."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.kind import UnclearError
from selfattn.doctor.patient import Facts, handed, parameters

MASKS = (
    *("attention_mask", "padding_mask", "key_padding_mask", "src_mask"),
    *("pad_mask", "src_key_padding_mask", "source_mask", "mask"),
)
CACHES = re.compile(r"past_key|cache|past|(?:^|_)(?:state|memory_kv)$")
FLAGS = ("use_cache", "cache_position")  # which hold no cache
OUTPUTS = ("logits", "last_hidden_state", "prediction_logits")
TARGETS = (
    *("decoder_input_ids", "target", "tgt", "trg", "decoder_ids"),
    *("tgt_ids", "target_ids", "y"),
)
SPECIAL = 3  # of the first tokens some have a meaning of their own
LOUD = 0.3  # how far weights are stirred: fresh ones hardly hear each other


@dataclass(frozen=True, eq=False)
class Whole:
    """A model that is called alike, whoever wrote it."""

    model: nn.Module
    facts: Facts
    kind: str
    n_tokens: int = 2
    names: dict[str, str] = field(default_factory=dict)
    form: Callable[[Tensor], Tensor] | None = None  # of its mask
    source: Tensor | None = None  # what is read, while it writes
    fresh: nn.Module | None = None  # as it was handed over
    dtype: torch.dtype = torch.float64  # in which it is asked

    @property
    def reads(self) -> bool:
        """Whether it reads one text and writes another."""
        return self.kind == "encoder-decoder"

    def __call__(self, ids: Tensor, real: Tensor | None = None) -> Tensor:
        """Its output, (batch, n, …), for the text that is asked about."""
        given: dict[str, Any] = {}
        if real is not None and self.form is not None:
            given[self.names["mask"]] = self.form(real)
        if real is not None and "positions" in self.names:
            places = (real.long().cumsum(-1) - 1).clamp(min=0)
            given[self.names["positions"]] = places
        if self.facts.get("call") is not None:
            texts = (ids,) if self.source is None else (self.source, ids)
            return output_of(self.facts["call"](self.model, *texts))
        if not self.reads:
            return whole_of(self.model, ids, given)
        source = self.source
        if source is None:  # the text that is asked about is the one read
            source, ids = ids, some_ids(self, len(ids), 4, seed=9)
        source = source.expand(len(ids), -1)
        return output_of(handed(self.model, source, **self.to(ids), **given))

    def to(self, target: Tensor) -> dict[str, Tensor]:
        """What is written so far, under the model's name for it."""
        return {self.names["target"]: target}

    def of(self, model: nn.Module) -> "Whole":
        """The same, of another model."""
        return replace(self, model=model)


def whole_of(model: nn.Module, ids: Tensor, given: Any) -> Tensor:
    """Logits of every token; some give the last alone, if no one trains."""
    output = output_of(handed(model, ids, **given))
    if output.ndim > 2 and output.shape[1] == ids.shape[1]:
        return output
    trained = learning_from(model)
    if trained and not given:
        return output_of(handed(model, ids, **{trained[0]: ids}))
    if output.ndim == 2:
        output = output[:, None]
    parts = [
        output_of(handed(model, ids[:, :i], **given))
        for i in range(1, ids.shape[1])
    ]
    parts = [p[:, None] if p.ndim == 2 else p[:, -1:] for p in parts]
    return torch.cat((*parts, output[:, -1:]), dim=1)


def learning_from(model: nn.Module) -> list[str]:
    """The arguments that tell it in training what comes next."""
    return [n for n in ("targets", "labels") if n in parameters(model)]


def output_of(value: Any) -> Tensor:
    """Logits, or vectors, in whatever a model returns.

    Raises:
        UnclearError: if there is no tensor of numbers in it.
    """
    for name in OUTPUTS:
        found = getattr(value, name, None)
        if found is None and isinstance(value, dict):
            found = value.get(name)
        if isinstance(found, Tensor):
            return found
    for one in tensors(value):
        if one.is_floating_point() and one.ndim > 1:
            return one
    raise UnclearError("It gives no tensor of numbers. Say call=….")


def tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in something, in their order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from tensors(one)


def some_ids(whole: Whole, batch: int, n: int, seed: int = 0) -> Tensor:
    """Some texts; no two tokens that follow each other are alike."""
    chance = torch.Generator().manual_seed(seed)
    low = SPECIAL if whole.n_tokens > 4 * SPECIAL else 0
    room = whole.n_tokens - low
    steps = torch.randint(1, max(2, room), (batch, n), generator=chance)
    return steps.cumsum(-1) % room + low


def changed(whole: Whole, ids: Tensor, at: int | slice) -> Tensor:
    """Another token, at some places."""
    low = SPECIAL if whole.n_tokens > 4 * SPECIAL else 0
    other = ids.clone()
    other[:, at] = (ids[:, at] - low + 1) % (whole.n_tokens - low) + low
    return other


def read(model: Any, facts: Facts, kind: str) -> Whole:
    """How a model is called, from its names and its first table.

    Raises:
        UnclearError: if it is no module, or its tokens are not found.
    """
    if not isinstance(model, nn.Module):
        raise UnclearError(
            "A model is examined with its weights: hand over a module, made "
            "and ready to be called."
        )
    listed, names = parameters(model), {}
    masks = [n for n in MASKS if n in listed]
    caches = [n for n in listed[1:] if CACHES.search(n) and n not in FLAGS]
    for what, found in (("mask", masks), ("cache", caches)):
        if found:
            names[what] = found[0]
    if "position_ids" in listed:
        names["positions"] = "position_ids"
    if kind == "encoder-decoder":
        known = [n for n in TARGETS if n in listed]
        names["target"] = (known or listed[1:2] or [""])[0]
    return Whole(model, facts, kind, count(model, facts), names)


def count(model: nn.Module, facts: Facts) -> int:
    """How many different tokens it takes.

    Raises:
        UnclearError: if nobody tells, and it has no table for them.
    """
    told = facts.get("n_tokens") or getattr(
        getattr(model, "config", None), "vocab_size", None
    )
    if isinstance(told, int):
        return told
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            return module.num_embeddings
    raise UnclearError("How many tokens does it know? Say n_tokens=….")


def stirred(model: nn.Module, dtype: torch.dtype = torch.float64) -> nn.Module:
    """A copy in float64, evaluated, whose every part is heard.

    In a fresh model some maps are zeros, and biases alike; then many a
    mistake moves nothing.
    """
    other = copy_of(model).to(dtype).eval()
    chance = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for x in other.parameters():
            new = torch.randn(x.shape, generator=chance, dtype=x.dtype)
            x += LOUD * new / (x.shape[-1] ** 0.5 if x.ndim > 1 else 3)
    return other
