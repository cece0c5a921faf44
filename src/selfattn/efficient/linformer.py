"""Linformer: look at a few mixtures of the keys instead of at every key.

Computes:  attention to mixtures of keys; `attention` if nothing is mixed
Time:      O(n_q m d + n_k m d)  Memory: O(n d), and m mixtures of d numbers
Supports:  neither mask, bias nor causal: a mixture holds tokens of all times
Reference: Wang et al. (2020), section 4
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from selfattn.bound import is_of_the_book, owned
from selfattn.called import check_called
from selfattn.checks import check_shapes
from selfattn.dot_product import (
    Bias,
    Keys,
    Mask,
    Output,
    Queries,
    Table,
    Values,
    attention_weights,
    fused_attention,
    refuse,
)
from selfattn.entering import check_at_layer, mixed
from selfattn.infinite import smaller
from selfattn.signatures import checked
from selfattn.spoilt import is_spoilt

MANY = 256  # numbers that may be added one after another in float32

# From (..., n, d) to (..., m, d): m mixtures of the tokens.
Projection = Callable[[Tensor], Tensor]


@checked
def linformer_weights(q: Queries, k: Keys, project: Projection) -> Table:
    """The weights on the tokens themselves that Linformer stands for.

    Softmax shares a query's weight out to mixtures; and each mixture passes
    on what it got to its tokens, as it was mixed of them. Where both are
    mixed alike, `LinformerAttention` is these weights times the values.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        project: mixes tokens along the length, and is linear: mixing the rows
            of the identity tells how much of each token is in each mixture.

    Returns:
        Weights, (..., n_q, n_k). Rows sum to one if those of the mixtures do.

    Reference: Wang et al. (2020), section 4, equation 7.

    >>> q, k = torch.zeros(1, 1), torch.zeros(5, 1)
    >>> linformer_weights(q, k, MeanPooling(2))  # token 2 is in both
    tensor([[0.1667, 0.1667, 0.3333, 0.1667, 0.1667]])
    """
    identity = torch.eye(k.shape[-2], dtype=k.dtype, device=k.device)
    mixtures = mixed("project", project, identity)  # (m, n_k): E of the paper
    keys = mixtures @ k
    if q.dtype == k.dtype:  # as autocast may have made them others
        keys = keys.to(q.dtype)
    weights = attention_weights(q, keys)
    return weights @ mixtures.to(weights)


class LinformerAttention(nn.Module):
    """Attention to mixtures of the keys and values, few for any length.

    Args:
        project: mixes the keys along the length, (..., n_k, d) to
            (..., m, d), and the values, too. A `LearnedProjection`, as in the
            paper; or whatever does as much, like `MeanPooling`. With
            ``nn.Identity()`` this is exactly `attention`.
        project_values: mixes the values instead, if they are not to share.

    Reference: Wang et al. (2020), section 4, equation 7.

    >>> q, k, v = torch.randn(3, 100, 8)
    >>> attend = LinformerAttention(LearnedProjection(128, 16))
    >>> attend(q, k, v).shape
    torch.Size([100, 8])
    >>> from selfattn.dot_product import attention
    >>> exact = LinformerAttention(nn.Identity())
    >>> torch.allclose(exact(q, k, v), attention(q, k, v), atol=1e-6)
    True
    """

    @checked
    def __init__(
        self, project: Projection, project_values: Projection | None = None
    ) -> None:
        super().__init__()
        check_called("project", project, "x")
        if project_values is not None:
            check_called("project_values", project_values, "x")
        # None if shared: of a module under two names, what
        # `torch.func.functional_call` took away is not put back.
        self.project = owned(project)
        shared = project_values is project
        self.project_values = None if shared else owned(project_values)

    @checked
    def forward(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        *,
        mask: Mask = None,
        bias: Bias = None,
        causal: bool = False,
    ) -> Output:
        """Mix the keys, mix the values, and attend to what came out.

        Args:
            q: queries, (..., n_q, d).
            k: keys, (..., n_k, d).
            v: values, (..., n_k, d_v).
            mask: refused: every key is in every mixture.
            bias: refused, likewise.
            causal: refused: a mixture holds keys of the future, too.

        Returns:
            The output, (..., n_q, d_v); zeros if there is no key. It can be
            differentiated once, not twice, on most of the kernels that
            `fused_attention` takes.

        Raises:
            ValueError: if shapes do not fit together, there are more keys
                than a learned projection knows, keys and values are not
                mixed into equally many, or into none, or a mask, a bias or
                ``causal`` is given.
        """
        check_shapes(q, k, v)
        why = "each key it looks at is a mixture of many"
        refuse("LinformerAttention", why, mask, bias)
        if causal:
            raise ValueError(
                "LinformerAttention cannot be causal: each key it looks at is "
                "a mixture of many, those of the future among them"
            )
        if k.shape[-2] == 0:  # a mixture of nothing is no key
            return fused_attention(q, k, v)
        keys = mixtures("project", self.project, k)
        if self.project_values is None:
            values = mixtures("project", self.project, v)
        else:
            values = mixtures("project_values", self.project_values, v)
        # Under autocast, which decides by itself of which type they are.
        return fused_attention(q, keys.to(q.dtype), values.to(q.dtype))


def mixtures(name: str, project: Projection, x: Tensor) -> Tensor:
    """What a projection makes of tokens, which are the caller's: one that
    nobody here knows may work in place, and gets a copy.
    """
    known = is_of_the_book(project) or type(project) is nn.Identity
    return mixed(name, project, x if known else x.clone())


class LearnedProjection(nn.Module):
    """m mixtures of up to n tokens, with weights to be trained.

    Args:
        n: how many tokens there can be; fewer use the first weights.
        m: how many mixtures to make of them.

    Reference: Wang et al. (2020), section 4. The weights start as in its
    theorem 2: normal, with variance 1/m, which keeps dot products on average.

    >>> mix = LearnedProjection(100, 16)
    >>> mix(torch.randn(2, 3, 90, 8)).shape
    torch.Size([2, 3, 16, 8])
    """

    @checked
    def __init__(self, n: int, m: int) -> None:
        super().__init__()
        check_counts(m, n=n)
        self.weight = nn.Parameter(torch.randn(m, n) / math.sqrt(m))

    @checked
    def forward(
        self, x: Float[Tensor, "*batch n d"]
    ) -> Float[Tensor, "*batch m d"]:
        """Mix the tokens, all features and heads in one product.

        Raises:
            ValueError: if there are more tokens than weights.
        """
        check_at_layer("x", x, self.weight)
        n = x.shape[-2]
        if n > self.weight.shape[1]:
            raise ValueError(
                "a learned projection takes at most as many tokens as it has "
                f"weights for, but there are {n} tokens and weights for "
                f"{self.weight.shape[1]}"
            )
        # Autograd would else make a gradient of the weights for each head.
        columns = x.movedim(-2, 0)
        mixed = self.weight[:, :n].to(x.dtype) @ columns.flatten(1)
        return mixed.unflatten(1, columns.shape[1:]).movedim(0, -2).to(x.dtype)


class MeanPooling(nn.Module):
    """m mixtures of any number of tokens: means of neighbours, none learned.

    Args:
        m: how many mixtures to make. Token t of n goes into mixture ⌊t m/n⌋
            or, where a border cuts through it, into both; if there are fewer
            than m tokens, each stays alone.

    Reference: Wang et al. (2020), section 4, "general projections".

    >>> MeanPooling(2)(torch.tensor([[1.0], [3.0], [5.0], [7.0]]))
    tensor([[2.],
            [6.]])
    """

    @checked
    def __init__(self, m: int) -> None:
        super().__init__()
        check_counts(m)
        self.m = m

    @checked
    def forward(
        self, x: Float[Tensor, "*batch n d"]
    ) -> Float[Tensor, "*batch m d"]:
        """The means."""
        means = means_of(x, min(self.m, x.shape[-2]))
        # Tokens are added up before they are divided by their number.
        by = smaller(x) if is_spoilt(means) else 1.0
        return means if by == 1 else means_of(x * by, means.shape[-2]) / by


def means_of(x: Tensor, m: int) -> Tensor:
    """The means of m pieces of the tokens."""
    if 0 in x.shape:  # of which PyTorch makes none
        return x[..., :m, :]
    n = x.shape[-2]
    if n > MANY * m:  # pooled, numbers are added one after another
        borders = [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
        pieces = [x[..., start:end, :] for start, end in borders]
        return torch.stack([one.mean(dim=-2) for one in pieces], dim=-2)
    flat = x.flatten(0, -3) if x.ndim > 2 else x[None]
    means = F.adaptive_avg_pool1d(flat.mT, m).mT
    return means.reshape(*x.shape[:-2], m, x.shape[-1])


def check_counts(m: int, **tokens: int) -> None:
    """Raise unless there is at least one of each."""
    counts = {"m": m, **tokens}
    if min(counts.values()) < 1:
        told = ", ".join(f"{name}={n}" for name, n in counts.items())
        raise ValueError(
            f"there must be at least 1 token and 1 mixture, but {told}"
        )
