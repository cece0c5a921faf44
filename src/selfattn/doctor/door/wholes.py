"""What a whole model looks like: by what it makes of the numbers of tokens."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.door.trying import attempt, needed
from selfattn.doctor.kind import UnclearError
from selfattn.doctor.patient import parameters
from selfattn.doctor.whole.calling import (
    TARGETS,
    learning_from,
    output_of,
    whole_of,
)

N = 5
WRITERS = re.compile(r"gpt|llama|decoder|causal|language|generator|lm\b", re.I)


def kinds_of(module: nn.Module, name: str) -> list[tuple[str, str]]:
    """The kinds of whole models that a module may be of, and why."""
    tables = [x for x in module.modules() if isinstance(x, nn.Embedding)]
    if not tables:
        return []
    fewest = min(table.num_embeddings for table in tables)
    for call, lengths in calls(module):
        texts = [ids(n, fewest, seed) for seed, n in enumerate(lengths)]
        before = said(call, texts)
        if before is None or before.shape[:2] != texts[-1].shape:
            continue
        if len(texts) == 2:
            return [("encoder-decoder", "it takes the numbers of two texts")]
        return list(of_one_text(call, texts[0], before, name))
    return []


def calls(module: nn.Module) -> Iterator[tuple[Callable[..., Any], list[int]]]:
    """Ways to call it, with one text or two, and how long these are."""
    target = [n for n in TARGETS if n in parameters(module)]
    if target:
        yield partial(with_target, module, target[0]), [N, N + 2]
    elif len(needed(module)) > 1:
        yield module, [N, N + 2]
    else:
        yield module, [N]
        if learning_from(module):  # it may give the last token's alone
            yield partial(whole_of, module, given={}), [N]


def with_target(
    module: nn.Module, name: str, source: Tensor, target: Tensor
) -> Any:
    """What it says of two texts; the second goes under its name."""
    return module(source, **{name: target})


def ids(n: int, n_tokens: int, seed: int) -> Tensor:
    """The numbers of the tokens of two texts."""
    chance = torch.Generator().manual_seed(seed)
    return torch.randint(0, n_tokens, (2, n), generator=chance)


def said(call: Callable[..., Any], texts: list[Tensor]) -> Tensor | None:
    """A vector for each token; None if it gives nothing of the kind."""
    try:
        output = output_of(attempt(call, *texts))
    except UnclearError:
        return None
    return output if output.ndim == 3 else None


def of_one_text(
    call: Callable[..., Any], text: Tensor, before: Tensor, name: str
) -> Iterator[tuple[str, str]]:
    """A language model hears the past alone; one that does not, but is called
    so, may be an ill one. Who hears no other token is no model of texts.
    """
    moved = torch.stack([moves(call, text, before, j) for j in range(N)], -1)
    if moved.triu(1).any():
        why = "it takes the numbers of tokens, and hears both sides"
        found = [("encoder", why), ("language-model", f"{why}, as it may not")]
        yield from found[::-1] if WRITERS.search(name) else found[:1]
    elif moved.tril(-1).any():
        why = "it takes the numbers of tokens, and none hears a later one"
        yield "language-model", why


def moves(
    call: Callable[..., Any], text: Tensor, before: Tensor, at: int
) -> Tensor:
    """Which tokens' vectors are other ones when one token is."""
    other = text.clone()
    other[:, at] = text[:, (at + 1) % N]
    after = said(call, [other])
    if after is None or after.shape != before.shape:
        return torch.zeros(N, dtype=torch.bool)
    return ((after - before).abs() > 1e-6).any(-1).any(0)
