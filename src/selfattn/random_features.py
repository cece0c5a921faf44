"""Random features: products of them estimate the exponential of a product.

Softmax weighs by exp(q·k). With features φ whose products are that on
average, sums over keys can be made before any query is looked at.
"""

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.utils._python_dispatch import _disable_current_modes

from selfattn.checks import check_whole
from selfattn.pieces import without_autocast
from selfattn.signatures import Seed, checked
from selfattn.spoilt import can_look
from selfattn.transforms import is_transformed, untraced


@checked
def random_directions(
    n_features: int, d: int, *, seed: Seed = 0, orthogonal: bool = True
) -> Float[Tensor, "n_features d"]:
    """Random vectors ω, each standard normal; those of a block orthogonal.

    Args:
        n_features: how many.
        d: how long; each d of them are orthogonal to one another.
        seed: other numbers for another seed. The global generator is not
            touched.
        orthogonal: False draws each by itself.

    Returns:
        The vectors, (n_features, d), in float32.

    Raises:
        ValueError: if there is to be no vector, or it has no numbers.

    Reference: Choromanski et al. (2021), section 2.4.

    >>> ω = random_directions(5, 3)
    >>> abs(ω[0] @ ω[1]) < 1e-5, abs(ω[1] @ ω[2]) < 1e-5
    (tensor(True), tensor(True))
    """
    check_whole(n_features=n_features, d=d)
    if min(n_features, d) < 1:
        raise ValueError(
            "there must be at least 1 feature of at least 1 number, but "
            f"n_features={n_features} and d={d}"
        )
    generator = torch.Generator().manual_seed(seed)
    single = normal(n_features, d, generator=generator)
    if not orthogonal:
        return single
    n_blocks = math.ceil(n_features / d)
    square = normal(n_blocks, d, d, generator=generator)
    turned, upper = torch.linalg.qr(square)
    # Without this the turn is not uniform: the signs are the algorithm's own.
    turned = turned * upper.diagonal(dim1=-2, dim2=-1).sign()[:, None, :]
    # Each is as long as a normal vector is, drawn by itself.
    lengths = single.norm(dim=-1, keepdim=True)
    return turned.mT.reshape(-1, d)[:n_features] * lengths


def normal(*shape: int, generator: torch.Generator) -> Tensor:
    """Standard normal numbers, in float32.

    A seed stands for one draw, whatever type or device is the default, and
    however many arguments `torch.func.vmap` has in hand: it draws anew for
    each of them, or not at all. A traced graph has what was drawn for a
    constant: if it drew by itself, every call would have other numbers.
    """
    draw = partial(
        torch.randn, generator=generator, dtype=torch.float32, device="cpu"
    )
    if is_transformed():
        with temporarily_clear_interpreter_stack():
            return draw(shape)
    with _disable_current_modes(), untraced():
        drawn = draw([*map(int, shape)])
    return torch.ops.aten.lift_fresh_copy(drawn)


@without_autocast
def log_features(
    x: Float[Tensor, "... d"], omega: Float[Tensor, "n_features d"]
) -> Float[Tensor, "... n_features"]:
    """Logarithms of the features φ(x) = exp(ω·x − |x|²/2), one for each ω.

    On average over ω, φ(x)·φ(y)/m is exp(x·y), for m features: they are those
    of softmax. None is negative, so that no weight is.

    Reference: Choromanski et al. (2021), lemma 1, equation 5.

    >>> x = torch.tensor([[2.0, 0.0]])
    >>> log_features(x, torch.eye(2))
    tensor([[ 0., -2.]])
    """
    return x @ omega.mT - x.square().sum(dim=-1, keepdim=True) / 2


def log_products(log_q: Tensor, log_k: Tensor) -> Tensor:
    """Logarithms of the products of features, up to a number for each query,
    whose row is divided by its sum.
    """
    # Each token's features are divided by their largest, lest exp overflow;
    # that is undone where it matters.
    top_q, top_k = log_q.amax(-1, True), log_k.amax(-1, True)
    products = (log_q - top_q).exp() @ (log_k - top_k).exp().mT
    # The slope of a logarithm at 0 is infinite; times a weight of 0, NaN.
    limits = torch.finfo(products.dtype)
    none = products < limits.tiny
    logs = products.masked_fill(none, 1.0).log() + top_k.mT
    logs = logs.masked_fill(none, -math.inf)
    if can_look(none) and none.any():
        most = math.log(limits.tiny) + top_k.mT  # that what is lost may be
        counts = most > logs.amax(-1, True) + math.log(limits.eps)
        if (none & counts).any():
            return log_products_by_query(log_q, log_k)
    return logs


def log_products_by_query(log_q: Tensor, log_k: Tensor) -> Tensor:
    """The same where products are too small for the type, and yet count.

    A key far from a query's directions may outweigh all others by its length.
    """
    rows = (
        (query[..., None, :] + log_k).logsumexp(dim=-1)
        for query in log_q.unbind(dim=-2)
    )
    return torch.stack([*rows], dim=-2)
