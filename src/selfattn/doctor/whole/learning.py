"""A whole model in training, in other types, and at its longest length."""

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.probes import numbers
from selfattn.doctor.whole import mistakes as known
from selfattn.doctor.whole.calling import Whole, some_ids
from selfattn.doctor.whole.seeing import (
    BATCH,
    MOVES,
    Fault,
    N,
    NotAskedError,
    because,
    moved,
    said,
)

LONGEST = (
    *("max_position_embeddings", "n_positions", "block_size", "max_len"),
    *("max_seq_len", "context_length", "max_length", "n_ctx"),
)
LONG = 300  # beyond which a text takes too long to read
OFF = {torch.float32: 1e-2, torch.bfloat16: 0.5}  # of the largest number
RATES = ("drop", "p_drop")


def training(whole: Whole) -> Fault | None:
    """In training, two calls differ, if it has something to drop."""
    if not any(rate > 0 for rate in rates(whole.model)):
        raise NotAskedError("it has no rate to drop by")
    model = copy_of(whole.model).train()
    ids = some_ids(whole, BATCH, N)
    torch.manual_seed(0)
    pair = [said(whole.of(model), ids) for _ in range(2)]
    if moved(*pair).any():
        return None
    return because(known.dropout_that_never_begins, "Two calls agree.")


def rates(model: nn.Module) -> Iterator[float]:
    """All shares that a model may drop."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            yield module.p
        for name, value in vars(module).items():
            if "drop" in name and isinstance(value, float):
                yield value


def gradients(whole: Whole) -> Fault | None:
    """A gradient reaches every parameter."""
    model = copy_of(whole.model)
    ids = some_ids(whole, BATCH, N)
    value = whole.of(model)(ids)
    if not value.requires_grad:
        return because(known.cut_from_its_loss, "Nothing can be learned.")
    total = (value * numbers(*value.shape, seed=9).to(value)).sum()
    total.backward()
    cut = [
        name
        for name, x in model.named_parameters()
        if x.requires_grad and not learns(x) and not is_aside(name)
    ]
    if not cut:
        return None
    more = f" and {len(cut) - 3} more" if len(cut) > 3 else ""
    words = f"None reaches {', '.join(cut[:3])}{more}."
    return because(known.cut_from_its_loss, words)


def learns(x: Tensor) -> bool:
    """Whether a parameter has a gradient; keys' biases may have zeros."""
    return x.grad is not None and (x.ndim < 2 or bool(x.grad.any()))


def is_aside(name: str) -> bool:
    """Whether a part is no part of this output, by its name."""
    return "pooler" in name or "token_type" in name


def table_and_head(model: nn.Module) -> tuple[Tensor, Tensor] | None:
    """The first table of vectors, and the last map to as many scores."""
    tables = [m.weight for m in model.modules() if isinstance(m, nn.Embedding)]
    heads = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
    pairs = itertools.product(tables[:1], heads[::-1])
    return next((p for p in pairs if p[0].shape == p[1].shape), None)


def tied(whole: Whole) -> Fault | None:
    """Weights that are said to be tied are one."""
    # Not "or": a module's truth may be its length, which it may not tell.
    handed = whole.model if whole.fresh is None else whole.fresh
    pair = table_and_head(handed)
    if pair is None:
        raise NotAskedError("it has no head as large as its table")
    config = getattr(whole.model, "config", None)
    told = whole.facts.get(
        "tied", getattr(config, "tie_word_embeddings", None)
    )
    table, head = pair
    if head is table or head.data_ptr() == table.data_ptr():
        return None
    if torch.equal(head, table):
        return because(known.tied_by_a_copy, "They are equal, and two.")
    if told:
        return because(known.not_tied, "They are two.")
    raise NotAskedError("nobody said that they should be (else say tied=True)")


def longest(whole: Whole) -> int | None:
    """The longest text, if somebody tells."""
    told = whole.facts.get("longest")
    holders = [getattr(whole.model, "config", None), *whole.model.modules()]
    found = [getattr(one, n, None) for one in holders for n in LONGEST]
    numbers_ = [x for x in (told, *found) if isinstance(x, int) and x > 1]
    return numbers_[0] if numbers_ else None


def lengths(whole: Whole) -> Fault | None:
    """It takes texts of every length, up to its limit."""
    limit = longest(whole)
    most = [limit] if limit and limit <= LONG else [31]
    if limit and whole.reads:
        most = [min(limit, LONG)]
    for n in (1, 2, 3, *most):
        try:
            output = said(whole, some_ids(whole, 1, n))
        except Exception as error:
            if n > 3 and limit is None:
                return None
            words = f"At {n} tokens it raises {type(error).__name__}."
            return because(known.too_short_a_reach, words)
        if not output.isfinite().all() or output.shape[1] != n:
            words = f"At {n} tokens it gives {tuple(output.shape)}, or NaN."
            return because(known.too_short_a_reach, words)
    return None


def beyond(whole: Whole) -> Fault | None:
    """Beyond its limit it raises an error, or goes on as before."""
    limit = longest(whole)
    if limit is None:
        raise NotAskedError("its limit is not known (else say longest=…)")
    if limit > LONG:
        raise NotAskedError(f"{limit} tokens are more than I try")
    ids = some_ids(whole, 1, limit + 2)
    try:
        output = said(whole, ids)
    except Exception:
        return None
    if output.shape[1] != limit + 2 or not output.isfinite().all():
        return because(known.silently_cut, "It gives less than it was given.")
    swapped = ids.clone()
    swapped[:, [-2, -1]] = ids[:, [-1, -2]]
    if whole.kind == "encoder":
        same = said(whole, swapped)[:, [-1, -2]]
        if not moved(output[:, -2:], same).any():
            return because(known.silently_cut, "The last places are one.")
    return None


def precision(whole: Whole) -> Fault | None:
    """In float32 and bfloat16 it says what it says in float64."""
    ids = some_ids(whole, BATCH, N)
    exact = said(whole, ids)
    scale = exact.abs().amax()
    for dtype, off in OFF.items():
        model = copy_of(whole.model).to(dtype)
        try:
            output = said(whole.of(model), ids)
        except RuntimeError as error:
            words = f"In {dtype} it raises {error}"[:200]
            raise NotAskedError(words) from None
        gap = (output.double() - exact).abs().amax()
        if not gap <= off * scale + MOVES:
            words = f"In {dtype} it is off by {gap / scale:.0%} of its size."
            return because(known.lost_in_half_precision, words)
    return None
