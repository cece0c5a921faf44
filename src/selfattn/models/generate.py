"""Generation: choosing the next token, again and again.

A model gives a logit for each token. `greedy` takes the largest; `sample`
draws, after `keep_top_k` or `keep_top_p` took the unlikely ones away.
`complete` does so until the text is as long as wanted.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from selfattn.called import check_called
from selfattn.checks import are_at_hand, check_places
from selfattn.models.steps import (
    MOST,
    answered,
    check_chosen,
    check_ranked,
    check_start,
    tempered,
)
from selfattn.signatures import Count, Positive, checked

Logits = Float[Tensor, "*batch n_tokens"]
Ids = Int[Tensor, "*batch"]
Step = Callable[[Tensor, Any], tuple[Tensor, Any]]


@checked
def greedy(logits: Logits) -> Ids:
    """The likeliest token, (..., n_tokens) -> (...); the first of equals.

    Raises:
        ValueError: if a row of logits has NaN or plus infinity, or nothing
            that is finite.

    >>> greedy(torch.tensor([[0.1, 2.0, 2.0]]))
    tensor([1])
    """
    check_ranked(logits)
    return logits.argmax(dim=-1)


@checked
def sample(
    logits: Logits,
    *,
    temperature: float | int = 1.0,
    top_k: Positive | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Ids:
    """A token drawn at random, by its probability.

    Args:
        logits: (..., n_tokens).
        temperature: what the logits are divided by, before all else: below 1
            the likely become likelier, above 1 all become more alike.
        top_k: draw among so many of the likeliest; see `keep_top_k`.
        top_p: draw among those that make up so much; see `keep_top_p`.
            It is applied to what ``top_k`` leaves.
        generator: where the randomness comes from, on the device of the
            logits; PyTorch's own when None.

    Returns:
        Token numbers, (...).

    Raises:
        ValueError: if the temperature is not larger than 0; at 0 it would
            be `greedy`. If no token can be drawn: a row has NaN or plus
            infinity, or nothing finite.

    >>> logits = torch.tensor([[1.0, 3.0, 2.0]]).log()
    >>> sample(logits, top_k=1)
    tensor([1])
    """
    if not temperature > 0:
        raise ValueError(
            "a temperature must be larger than 0 (use `greedy` for 0), but "
            f"temperature={temperature}"
        )
    check_ranked(logits)
    if logits.shape[-1] > MOST:
        raise ValueError(
            f"a token can be drawn among {MOST} at most, but logits is "
            f"{tuple(logits.shape)}"
        )
    logits = tempered(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        check_share("top_p", top_p)
        logits = keep_top_p(logits, top_p)
    weights = logits.softmax(dim=-1).reshape(-1, logits.shape[-1])
    drawn = torch.multinomial(weights, 1, generator=generator)
    return drawn.reshape(logits.shape[:-1])


@checked
def keep_top_k(logits: Logits, k: int) -> Logits:
    """The k largest logits, and those equal to the last of them.

    Args:
        logits: (..., n_tokens).
        k: how many, at least 1; all, if there are no more.

    Returns:
        Logits of the same shape, minus infinity for the others.

    Raises:
        ValueError: if none is to be kept, or as for `greedy`.

    Reference: Fan et al. (2018), section 5.4.

    >>> keep_top_k(torch.tensor([1.0, 3.0, 2.0]), 2)
    tensor([-inf, 3., 2.])
    """
    if k < 1:
        raise ValueError(f"at least 1 token must be kept, but k={k}")
    check_ranked(logits)
    k = min(k, logits.shape[-1])
    last = logits.topk(k, dim=-1).values[..., -1:]
    return logits.masked_fill(logits < last, -math.inf)


@checked
def keep_top_p(logits: Logits, p: float | int) -> Logits:
    """The fewest likeliest tokens whose probabilities make up p or more.

    Args:
        logits: (..., n_tokens).
        p: the probability to make up, above 0 and up to 1.

    Returns:
        Logits of the same shape, minus infinity for the others.

    Raises:
        ValueError: if p is no such probability, or as for `greedy`.

    Reference: Holtzman et al. (2020), section 3.1.

    >>> logits = torch.tensor([0.1, 0.6, 0.3]).log()
    >>> keep_top_p(logits, 0.5).exp(), keep_top_p(logits, 0.7).exp()
    (tensor([0.0000, 0.6000, 0.0000]), tensor([0.0000, 0.6000, 0.3000]))
    """
    check_share("p", p)
    check_ranked(logits)
    ordered, place = logits.sort(dim=-1, descending=True, stable=True)
    # In float64: sums of a whole vocabulary are else rounded past p. Even so
    # the last of them may come to 1, and p = 1 means all.
    weights = ordered.double().softmax(dim=-1)
    # Kept is every token before which p is not yet made up.
    before = weights.cumsum(dim=-1) - weights
    if p < 1:
        ordered = ordered.masked_fill(before >= p, -math.inf)
    return torch.empty_like(logits).scatter(-1, place, ordered)


def check_share(name: str, p: float) -> None:
    """Raise unless this is a probability that tokens can make up."""
    if not 0 < p <= 1:
        raise ValueError(
            "a probability to make up lies above 0 and up to 1, but "
            f"{name}={p}"
        )


def chosen_from(
    logits: Tensor, choose: Callable[[Tensor], Tensor], prompt: Tensor
) -> Tensor:
    """A token for each row, where those of the prompt are."""
    check_places(prompt=prompt, logits=logits)
    chosen = choose(logits)
    check_chosen(chosen, logits)
    return chosen


@checked
@torch.no_grad()
def complete(
    step: Step,
    prompt: Int[Tensor, "batch n"],
    n_new: Count,
    *,
    choose: Callable[[Tensor], Tensor] = greedy,
    stop: Count | None = None,
    cached: bool = True,
) -> Int[Tensor, "batch n_all"]:
    """Go on from a prompt, one token at a time.

    Args:
        step: what makes logits of new tokens and a cache: a `Decoder`'s
            ``step``, or ``partial(model.step, memory=model.read(source))``
            of an `EncoderDecoder` or a `Translator`. The model should be in
            evaluation mode, or dropout chooses with you.
        prompt: token numbers, (batch, n), n at least 1 and the same for all.
        n_new: how many tokens to add at most.
        choose: makes a token of logits: `greedy`, or `sample` with its
            options bound by `functools.partial`.
        stop: a token that ends a text; it is repeated until the longest of
            the batch has ended.
        cached: whether to keep what was computed for the tokens so far, or
            to compute all anew for each: the same text, later; and the only
            way where a mechanism chooses keys by how many there are.

    Returns:
        The prompt and what follows, (batch, n + n_new) or fewer columns if
        all have ended before.

    Raises:
        ValueError: if there is nothing to go on from; if the step makes no
            logits that can be ranked, for each row, or ``choose`` no token.
        TypeError: if one of them cannot be called so.

    >>> def after(tokens, cache):  # the next number, of ten
    ...     following = (tokens[:, -1] + 1) % 10
    ...     return torch.eye(10)[following], None
    >>> complete(after, torch.tensor([[3, 4]]), 4)
    tensor([[3, 4, 5, 6, 7, 8]])
    """
    check_called("choose", choose, "logits")
    check_start(step, prompt)
    # Copies, for a step may write over what it is given.
    tokens, new, cache = prompt.clone(), prompt.clone(), None
    ended = torch.zeros_like(prompt[:, 0], dtype=torch.bool)
    for _ in range(n_new):
        answer = step(new, cache if cached else None)
        logits, cache = answered(answer, len(prompt), stop)
        chosen = chosen_from(logits, choose, prompt)
        if stop is not None:
            chosen = chosen.long().masked_fill(ended, stop)
            ended = ended | (chosen == stop)
        tokens = torch.cat((tokens, chosen[:, None]), dim=-1)
        if stop is not None and are_at_hand(ended) and ended.all():
            break
        new = chosen[:, None] if cached else tokens.clone()
    return tokens
