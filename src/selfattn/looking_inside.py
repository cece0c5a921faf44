"""Looking inside: what an attention attends to, and when something is wrong.

Everything here takes *weights*, (..., n_q, n_k), as `attention_weights` and
`record_weights` give them: after softmax, before dropout.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from selfattn.checks import (
    are_at_hand,
    check_broadcasts,
    check_number,
    check_places,
    check_tables,
    check_tensor,
    is_transformed,
)
from selfattn.multihead import MultiHeadAttention
from selfattn.probing import Probe as Probe
from selfattn.signatures import checked, shown

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
        ValueError: if the base is not larger than 1, or a weight is
            negative.

    Reference: Shannon (1948), section 6.

    >>> entropy(torch.tensor([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]), base=2)
    tensor([1., 0.])
    """
    if not 1 < base < math.inf:
        raise ValueError(
            "the base of a logarithm must be a finite number larger than 1, "
            f"but base={base}"
        )
    check_not_negative(weights)
    return torch.special.entr(weights).sum(dim=-1) / math.log(base)


def check_not_negative(weights: Tensor) -> None:
    """Raise if a weight is negative, where that can be seen.

    One that is so by rounding alone would have an entropy of −∞, too.
    """
    if weights.is_meta or is_transformed():
        return
    if bool((weights < 0).any()):
        raise ValueError(
            "weights must not be negative, but the least of these is "
            f"{float(weights.min()):.4g}; scores become weights by softmax"
        )


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
    check_tables(mask, None)
    check_broadcasts("mask", mask, tuple(weights.shape))
    visible = mask.expand(weights.shape).sum(dim=-1)
    # Counted in whole numbers, as float16 counts to 65,504; their logarithm
    # would be of the default type, which is not that of the weights.
    wide = torch.promote_types(weights.dtype, torch.float32)
    share = entropy(weights) / visible.to(wide).log()
    return share.masked_fill(visible < 2, 0.0).to(weights.dtype)


@checked
def not_finite(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, int]]:
    """Which tensors hold NaN or infinity, and how many of each.

    Args:
        tensors: by name, in the order in which they were computed, such as
            ``attention_steps(q, k, v)._asdict()`` or a model's parameters.

    Returns:
        For each tensor that is not finite, in the same order, its counts of
        ``nan``, ``inf`` and ``-inf``. The first is where the trouble began.

    Raises:
        TypeError: if one of them is no tensor.
        ValueError: if one of them is sparse, complex, quantised or on meta.

    >>> x = torch.tensor([1.0, 0.0])
    >>> not_finite({"x": x, "log": x.log()})
    {'log': {'nan': 0, 'inf': 0, '-inf': 1}}
    """
    counts = {name: counted(name, x) for name, x in tensors.items()}
    return {name: of for name, of in counts.items() if any(of.values())}


def counted(name: str, x: Tensor) -> dict[str, int]:
    """How many of a tensor's numbers are NaN, and how many infinite."""
    check_tensor(f"tensors[{name!r}]", x)
    if x.is_complex() or x.is_quantized or not are_at_hand(x):
        raise ValueError(
            f"tensors must be of real numbers that are at hand, but {name!r} "
            f"is {shown(x)} on {x.device}"
        )
    if x.is_floating_point() and x.itemsize < 2:
        x = x.float()  # of one byte, PyTorch does not tell
    return {
        "nan": int(x.isnan().sum()),
        "inf": int(x.isposinf().sum()),
        "-inf": int(x.isneginf().sum()),
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


# What single heads do. A head's name is "layer.head", both from 1, in the
# order in which a model lists its layers of attention.


@checked
def heads_of(model: nn.Module) -> dict[str, tuple[MultiHeadAttention, slice]]:
    """Each head's layer, and which features of what `W_o` reads are its own.

    >>> [*heads_of(nn.Sequential(MultiHeadAttention(8, 2)))]
    ['1.1', '1.2']
    """
    layers = (m for m in model.modules() if isinstance(m, MultiHeadAttention))
    return {
        f"{i}.{h + 1}": (
            layer,
            slice(h * layer.d_head, (h + 1) * layer.d_head),
        )
        for i, layer in enumerate(layers, 1)
        for h in range(layer.n_heads)
    }


@checked
def weight_on(
    weights: Float[Tensor, "batch h n_q n_k"],
    queries: Int[Tensor, " m"],
    keys: Int[Tensor, "batch m"],
) -> Float[Tensor, " h"]:
    """The mean weight that each head puts on one key of each query.

    With the token before as the key it is a head's *previous-token score*;
    with what came after the present token the last time, its *induction
    score*.

    Args:
        weights: (batch, n_heads, n_q, n_k).
        queries: positions that ask.
        keys: for each text, the position that each of them should look at.

    Returns:
        One mean a head, between 0 and 1.

    Raises:
        ValueError: if there is no query, or a position lies outside.

    >>> weights = torch.tensor([[[[1.0, 0.0], [0.7, 0.3]]]])
    >>> weight_on(weights, torch.tensor([1]), torch.tensor([[0]]))
    tensor([0.7000])
    """
    for name, at, n in (
        ("queries", queries, weights.shape[-2]),
        ("keys", keys, weights.shape[-1]),
    ):
        outside = are_at_hand(at) and ((at < 0) | (at >= n)).any()
        if at.numel() == 0 or outside:
            told = at.tolist() if are_at_hand(at) else shown(at)
            raise ValueError(
                f"{name} must be positions from 0 to {n - 1}, at least one, "
                f"but they are {told}"
            )
    asking = weights[:, :, queries.long()]  # of uint8, PyTorch makes a mask
    at = keys.long()[:, None, :, None].expand(-1, weights.shape[1], -1, 1)
    return asking.gather(-1, at).mean(dim=(0, 2, 3))


@checked
@contextmanager
def record_heads(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect what every head brings back, before `W_o` puts it together.

    Yields:
        A dictionary that fills as the model runs: (batch, n, d_head) of each
        head by its name. A layer that runs twice leaves what came last.

    >>> layer = MultiHeadAttention(8, 2)
    >>> with record_heads(layer) as heads:
    ...     _ = layer(torch.zeros(1, 3, 8))
    >>> heads["1.2"].shape
    torch.Size([1, 3, 4])
    """
    brought: dict[str, Tensor] = {}

    def record(names):
        def hook(_, given):
            brought.update({n: given[0][..., s] for n, s in names.items()})

        return hook

    with before_w_o(model, record):
        yield brought


@checked
@contextmanager
def change_heads(
    model: nn.Module, instead: Mapping[str, Tensor | float]
) -> Iterator[None]:
    """Put something else in place of what some heads bring back.

    Zero switches a head off; what `record_heads` collected from another text
    *patches* it. Everything after the head is computed anew.

    Args:
        model: a layer, or anything that contains some.
        instead: by the head's name, what broadcasts to (batch, n, d_head).

    Raises:
        TypeError: if what is put there is neither a number nor a tensor.
        ValueError: if the model has no such head, or if it does not fit.

    >>> layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    >>> with change_heads(layer, {"1.1": 0.0, "1.2": 0.0}):
    ...     layer(x).abs().max()
    tensor(0., grad_fn=<MaxBackward1>)
    """
    for name, value in instead.items():
        check_head(name, value, [*heads_of(model)])

    def change(names):
        def hook(_, given):
            x = given[0].clone()
            for name in names.keys() & instead.keys():
                check_instead(name, instead[name], x[..., names[name]])
                x[..., names[name]] = instead[name]
            return (x,)

        return hook

    with before_w_o(model, change):
        yield


def check_head(name: object, value: object, heads: list[str]) -> None:
    """Raise unless a model has this head, and this can stand in its place."""
    if name not in heads:
        raise ValueError(
            f"the heads of this model are {', '.join(heads) or 'none'}, but "
            f"{shown(name)} is none of them"
        )
    if isinstance(value, Tensor):
        check_tensor(f"instead[{name!r}]", value)
    else:
        check_number(f"instead[{name!r}]", value, finite=False)


def check_instead(name: str, value: Tensor | float, x: Tensor) -> None:
    """Raise unless this broadcasts to what a head brings back."""
    if not isinstance(value, Tensor):
        return
    check_places(**{"what the head brings back": x, "instead": value})
    sizes = zip(reversed(value.shape), reversed(x.shape), strict=False)
    fits = value.ndim <= x.ndim and all(a in (1, b) for a, b in sizes)
    if not fits or value.is_complex():
        raise ValueError(
            f"instead[{name!r}] must be real and broadcast to (batch, n, "
            f"d_head) = {tuple(x.shape)}, but it is {shown(value)}"
        )


@contextmanager
def before_w_o(model: nn.Module, make) -> Iterator[None]:
    """Hang a hook before each `W_o`, made of its heads' names and slices."""
    layers: dict[MultiHeadAttention, dict[str, slice]] = {}
    for name, (layer, own) in heads_of(model).items():
        layers.setdefault(layer, {})[name] = own
    hooks = [
        layer.W_o.register_forward_pre_hook(make(names))
        for layer, names in layers.items()
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@checked
def fewest_keys(
    weights: Float[Tensor, " n_k"], values: Float[Tensor, "n_k d_v"]
) -> Float[Tensor, " n_k"]:
    """Other weights with the same output, on at most d_v + 1 keys.

    As long as more keys have weight than an average in d_v dimensions can
    tell apart, some of it can be moved without moving the average. It is
    taken from the key with the largest weight, as far as that goes, until a
    key has none left; and so on.

    Args:
        weights: of one query; not negative.
        values: one a key.

    Returns:
        Weights with the same sum and the same output.

    Raises:
        ValueError: if a weight is negative, or anything is not finite.

    Reference: Carathéodory (1911).

    >>> values = torch.tensor([[0.0], [1.0], [2.0]])
    >>> other = fewest_keys(torch.tensor([0.25, 0.5, 0.25]), values)
    >>> other, other @ values
    (tensor([0.5000, 0.0000, 0.5000]), tensor([1.]))
    """
    for name, x in (("weights", weights), ("values", values)):
        if not are_at_hand(x):
            raise ValueError(
                f"{name} must be numbers, which are moved one by one, but on "
                f"meta and within torch.func there are none: {shown(x)}"
            )
    if not (weights.isfinite() & (weights >= 0)).all():
        raise ValueError(
            "weights must be finite and not negative, but they are "
            f"{weights.tolist()}"
        )
    if not values.isfinite().all():
        raise ValueError("values must be finite, but some are not")
    # What must stay: the output and the sum. In float64, as it is repeated.
    stays = torch.cat([values, torch.ones_like(values[:, :1])], -1).double()
    w = weights.double().clone()
    while (w > 0).sum() > stays.shape[1]:
        keys = (w > 0).nonzero().flatten()
        free = null_space(stays[keys].mT)
        top = w[keys].argmax()
        step = free @ free[top] if free[top].norm() > 1e-9 else free[:, 0]
        if step[top] > 0:  # the largest loses, as long as it can
            step = -step
        falls = step < 0
        far = w[keys][falls] / -step[falls]
        w[keys] += step * far.min()
        w[keys[falls][far.argmin()]] = 0.0
    return w.clamp(min=0).to(weights)


def null_space(matrix: Tensor) -> Tensor:
    """Orthonormal columns that the matrix takes to zero, (n, n - rank)."""
    # Each row is told from zero by its own size, however large another is.
    largest = matrix.abs().amax(dim=1, keepdim=True)
    matrix = matrix / largest.where(largest > 0, 1.0)
    _, sizes, rows = torch.linalg.svd(matrix)
    rank = int((sizes > 1e-12 * sizes.max()).sum())
    return rows[rank:].mT
