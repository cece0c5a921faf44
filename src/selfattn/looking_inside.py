"""Looking inside: what an attention attends to, and when something is wrong.

Everything here takes *weights*, (..., n_q, n_k), as `attention_weights` and
`record_weights` give them: after softmax, before dropout.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from selfattn.multihead import MultiHeadAttention
from selfattn.signatures import checked

Weights = Float[Tensor, "*batch n_q n_k"]
PerQuery = Float[Tensor, "*batch n_q"]


@checked
def row_sums(weights: Weights) -> PerQuery:
    """What the weights of each query add up to.

    It is 1, and 0 for a query that may see no key. A softmax over the wrong
    axis still gives a *mean* of 1 over a square of weights: look at each row.

    Args:
        weights: (..., n_q, n_k).

    Returns:
        One sum a query, (..., n_q).

    >>> row_sums(torch.tensor([[0.5, 0.5], [0.0, 0.0]]))
    tensor([1., 0.])
    """
    return weights.sum(dim=-1)


@checked
def peaks(weights: Weights) -> PerQuery:
    """The largest weight of each query: 1/n_k if it looks everywhere alike.

    Args:
        weights: (..., n_q, n_k).

    Returns:
        One weight a query, (..., n_q).

    >>> peaks(torch.tensor([[0.2, 0.7, 0.1], [0.25, 0.25, 0.5]]))
    tensor([0.7000, 0.5000])
    """
    # Without a key there is none to weigh anything.
    return weights.amax(dim=-1) if weights.shape[-1] else row_sums(weights)


@checked
def entropy(weights: Weights, *, base: float | int = math.e) -> PerQuery:
    """How widely each query looks: −Σ w log w over its keys.

    It is 0 for a query that looks at one key, and log n for one that looks
    at n keys alike. A weight of 0 adds 0, the limit of w log w; so does a
    query that may see no key.

    Args:
        weights: (..., n_q, n_k).
        base: of the logarithm: e counts in nats, 2 in bits.

    Returns:
        One entropy a query, (..., n_q).

    Raises:
        ValueError: if the base is not larger than 1.

    Reference: Shannon (1948), section 6.

    >>> entropy(torch.tensor([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]), base=2)
    tensor([1., 0.])
    """
    if not base > 1:
        raise ValueError(
            f"the base of a logarithm must be larger than 1, but base={base}"
        )
    return torch.special.entr(weights).sum(dim=-1) / math.log(base)


@checked
def spread(weights: Weights, mask: Tensor | None = None) -> PerQuery:
    """The entropy as a share of the largest possible one: between 0 and 1.

    Entropies of queries that see different numbers of keys, as under a causal
    mask, cannot be compared; their shares of log n_visible can.

    Args:
        weights: (..., n_q, n_k).
        mask: True where a query may attend; broadcasts to the weights. All
            keys when None.

    Returns:
        One share a query, (..., n_q): 1 where it looks at all visible keys
        alike. A query that sees one key or none has no choice, and gets 0.

    >>> spread(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([0., 1.])
    """
    if mask is None:
        mask = torch.ones_like(weights, dtype=torch.bool)
    visible = mask.expand(weights.shape).sum(dim=-1)
    most = visible.to(weights.dtype).log()
    return (entropy(weights) / most).masked_fill(visible < 2, 0.0)


@checked
def not_finite(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, int]]:
    """Which tensors hold NaN or infinity, and how many of each.

    Args:
        tensors: by name, in the order in which they were computed, such as
            ``attention_steps(q, k, v)._asdict()`` or a model's parameters.

    Returns:
        For each tensor that is not finite, in the same order, its counts of
        ``nan``, ``inf`` and ``-inf``. The first is where the trouble began.

    >>> x = torch.tensor([1.0, 0.0])
    >>> not_finite({"x": x, "log": x.log()})
    {'log': {'nan': 0, 'inf': 0, '-inf': 1}}
    """
    return {
        name: {
            "nan": int(x.isnan().sum()),
            "inf": int(x.isposinf().sum()),
            "-inf": int(x.isneginf().sum()),
        }
        for name, x in tensors.items()
        if not x.isfinite().all()
    }


@checked
@contextmanager
def record_weights(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the weights of every `MultiHeadAttention` that runs inside.

    Args:
        model: a layer, or anything that contains some.

    Yields:
        A list that fills as the layers run: one (batch, n_heads, n_q, n_k)
        for each time one of them does, before dropout, without gradients.
        The weights are computed once more for it, so recording takes time.

    Raises:
        ValueError: when a layer runs whose mechanism has no weights.

    >>> layer = MultiHeadAttention(8, 2)
    >>> with record_weights(layer) as weights:
    ...     _ = layer(torch.zeros(1, 3, 8))
    >>> weights[0].shape
    torch.Size([1, 2, 3, 3])
    """
    weights: list[Tensor] = []

    def record(layer, args, kwargs, output):
        with torch.no_grad():
            weights.append(layer.weights(*args, **kwargs))

    handles = [
        layer.register_forward_hook(record, with_kwargs=True)
        for layer in model.modules()
        if isinstance(layer, MultiHeadAttention)
    ]
    try:
        yield weights
    finally:
        for handle in handles:
            handle.remove()
