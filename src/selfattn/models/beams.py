"""Beam search: the likeliest text, not the likeliest next token.

A token that looks best now may lead where nothing good follows. So several
beginnings, the beams, are kept and gone on with side by side; it is still no
search of everything.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from selfattn.checks import are_at_hand, check_places
from selfattn.dot_product import widen
from selfattn.models.steps import answered, check_cache, check_start
from selfattn.signatures import Count, Positive, checked

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]


class Beams(NamedTuple):
    """Texts, the likeliest first, and the logarithm of each probability."""

    tokens: Int[Tensor, "batch n_beams n_all"]
    scores: Float[Tensor, "batch n_beams"]


@checked
@torch.no_grad()
def beam_search(
    step: Step,
    prompt: Int[Tensor, "batch n"],
    n_new: Count,
    *,
    n_beams: Positive,
    stop: Count | None = None,
    cached: bool = True,
) -> Beams:
    """Go on from a prompt, keeping the likeliest beginnings at each step.

    Args:
        step: what makes logits of new tokens and a cache, as for `complete`;
            the cache is a list of `KeysValues`.
        prompt: token numbers, (batch, n), n at least 1 and the same for all.
        n_new: how many tokens to add.
        n_beams: how many beginnings are kept of each text.
        stop: a token that ends a text; it is repeated, at no cost, and of
            texts that have all ended the step is asked no more.
        cached: whether to keep what was computed for the tokens so far.

    Returns:
        The texts with their prompt, (batch, n_beams, n + n_new), fewer if
        there are not so many, and the sum of the logarithms of their new
        tokens' probabilities. No score is divided by a length: shorter texts
        have the better of it.

    Raises:
        ValueError: if there is nothing to go on from; if the step makes no
            logits that can be ranked, for each row.
        TypeError: if the step cannot be called so.

    References: Graves (2012), section 2.5; Sutskever et al. (2014), 3.2.

    >>> logits = torch.tensor([[5.0, 4.0, 0], [0, 9.0, 0], [0, 0, 9.0]])
    >>> def after(tokens, cache):
    ...     return logits[tokens[:, -1]], None
    >>> found = beam_search(after, torch.tensor([[0]]), 2, n_beams=3)
    >>> found.tokens[0].tolist()
    [[0, 0, 0], [0, 1, 1], [0, 0, 1]]
    """
    check_start(step, prompt)
    tokens = prompt[:, None].clone()  # (batch, beams, n): at first one beam
    scores = torch.zeros_like(tokens[..., 0], dtype=torch.float32)
    ended = torch.zeros_like(tokens[..., 0], dtype=torch.bool)
    rows = torch.arange(len(prompt), device=prompt.device)[:, None]
    new, cache = prompt.clone(), None  # which a step may write over
    for i in range(n_new):
        if stop is not None and have_ended(ended):
            tokens = F.pad(tokens, (0, n_new - i), value=stop)
            break
        logits, cache = answered(step(new, cache), len(new), stop)
        gained = gains(logits, ended, stop)
        scores, parents, chosen = likeliest(scores, gained, n_beams)
        over = ended[rows, parents] | scores.isinf()
        chosen, ended = stopped(chosen, over, stop)
        at = (rows * tokens.shape[1] + parents).flatten()
        tokens = torch.cat((tokens[rows, parents], chosen[..., None]), -1)
        cache = following(cache, at, len(new)) if cached else None
        flat = tokens.flatten(0, 1)
        new = (flat[:, -1:] if cached else flat).clone()
    return Beams(tokens, scores)


def gains(logits: Tensor, ended: Tensor, stop: int | None) -> Tensor:
    """What each token adds to each text: the logarithm of its probability."""
    check_places(prompt=ended, logits=logits)
    [wide] = widen(logits)  # texts differ by less than float16 tells
    gained = wide.log_softmax(dim=-1).unflatten(0, ended.shape)
    if stop is not None:
        gained = at_no_cost(gained, ended, stop)
    return gained


def stopped(
    chosen: Tensor, over: Tensor, stop: int | None
) -> tuple[Tensor, Tensor]:
    """The tokens, and which texts have ended with them. A text that is over,
    or has no probability, goes nowhere.
    """
    if stop is None:
        return chosen, torch.zeros_like(over)
    chosen = chosen.masked_fill(over, stop)
    return chosen, chosen == stop


def likeliest(
    scores: Tensor, gained: Tensor, n_beams: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The best of all ways to go on: score, beam it comes from, token."""
    totals = (scores[..., None] + gained).flatten(1)
    best = totals.topk(min(n_beams, ways_on(totals)), dim=-1)
    n_tokens = gained.shape[-1]
    return best.values, best.indices // n_tokens, best.indices % n_tokens


def ways_on(totals: Tensor) -> int:
    """How many ways there are to go on, in the row that has the most.

    One that is impossible is none, were it only to fill the beams.
    """
    if totals.numel() == 0 or not are_at_hand(totals):
        return totals.shape[1]
    return int(totals.isfinite().sum(dim=1).max())


def have_ended(ended: Tensor) -> bool:
    """Whether there is no text to go on with."""
    at_hand = ended.numel() > 0 and are_at_hand(ended)
    return at_hand and bool(ended.all())


def at_no_cost(gained: Tensor, ended: Tensor, stop: int) -> Tensor:
    """A text that has ended goes on with the same token, for sure."""
    only = torch.full_like(gained, -torch.inf)
    only[..., stop] = 0.0
    return torch.where(ended[..., None], only, gained)


def following(cache: Any, rows: Tensor, n_rows: int) -> Any:
    """The caches of the beams that were kept, each that of its parent."""
    check_cache(cache, n_rows)
    if cache is None:
        return None
    return [type(kept)(*(part[rows] for part in kept)) for kept in cache]
