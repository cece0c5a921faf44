"""The first scores: a small network's (Bahdanau), and a product's (Luong).

Both mechanisms are called as every other of this book, with queries and keys
that may differ in width.
"""

from functools import partial

from jaxtyping import Bool, Float
from torch import Tensor, nn

from selfattn.checks import (
    check_batches,
    check_one_value,
    check_shapes,
    is_autocast,
)
from selfattn.dot_product import (
    attention,
    attention_weights,
    masked_softmax,
    with_bias,
    with_causal,
)
from selfattn.entering import check_enters, check_meets
from selfattn.hidden import average, match
from selfattn.mismatches import check_filled
from selfattn.signatures import Positive, checked
from selfattn.spoilt import projected

Queries = Float[Tensor, "*#batch n_q d_q"]
Keys = Float[Tensor, "*#batch n_k d_k"]
Values = Float[Tensor, "*#batch n_k d_v"]
Table = Float[Tensor, "... n_q n_k"]
Output = Float[Tensor, "... n_q d_v"]
Mask = Bool[Tensor, "..."] | None
Bias = Float[Tensor, "..."] | None


class AdditiveAttention(nn.Module):
    """Attention whose scores come from a network with one hidden layer.

    score(q, k) = w · tanh(W_q q + W_k k). Luong's *concat* is the same
    function: a matrix times q and k put together, [W_q W_k] [q; k], is the
    sum of two products.

    Args:
        d_q: features of queries.
        d_k: features of keys.
        d_hidden: width of the hidden layer. It is made for every pair, so
            memory grows as n_q n_k d_hidden.

    References: Bahdanau et al. (2015), appendix A.1.2; Luong et al. (2015),
    section 3.1, "concat".

    >>> import torch
    >>> attend = AdditiveAttention(d_q=3, d_k=5, d_hidden=4)
    >>> q, k, v = torch.ones(2, 3), torch.ones(7, 5), torch.ones(7, 6)
    >>> attend(q, k, v).shape
    torch.Size([2, 6])
    """

    @checked
    def __init__(self, d_q: Positive, d_k: Positive, d_hidden: Positive):
        """Make the two matrices and the vector of the score."""
        super().__init__()
        self.W_q = nn.Linear(d_q, d_hidden, bias=False)
        self.W_k = nn.Linear(d_k, d_hidden, bias=False)
        self.w = nn.Linear(d_hidden, 1, bias=False)

    @checked
    def weights(
        self,
        q: Queries,
        k: Keys,
        *,
        mask: Mask = None,
        bias: Bias = None,
        causal: bool = False,
    ) -> Table:
        """The attention weights, (..., n_q, n_k).

        Raises:
            ValueError: if shapes do not fit each other or the layer.
        """
        check_enters("q", q, self.W_q)
        check_enters("k", k, self.W_k)
        check_filled(self.w, q)
        asked, told = projected(self.W_q, q), projected(self.W_k, k)
        check_shapes(asked, told, told, mask, bias)
        score = partial(score_of_pairs, self.w)
        scores = match(asked, told, score)  # (..., n_q, n_k)
        biased = with_bias(scores, bias)
        return masked_softmax(biased, with_causal(mask, causal, q, k))

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
        """Attend, (..., n_q, d_v); arguments as for `attention`."""
        check_one_value(k, v)
        check_batches(q, k, v)
        check_meets("v", v, self.W_k)
        weights = self.weights(q, k, mask=mask, bias=bias, causal=causal)
        return average(weights.to(v.dtype), v)


def score_of_pairs(w: nn.Module, asked: Tensor, told: Tensor) -> Tensor:
    """The scores, w · tanh(of both), of what the matrices made."""
    pairs = asked[..., :, None, :] + told[..., None, :, :]
    return w(pairs.tanh()).squeeze(-1)


class MultiplicativeAttention(nn.Module):
    """Attention whose scores are products, divided by nothing.

    Luong's *general*, score(q, k) = q · W k, where W also lets queries and
    keys have different widths; and without widths his *dot*, q · k.

    Args:
        d_q: features of queries; None for no matrix.
        d_k: features of keys; None for no matrix.

    Raises:
        ValueError: if only one of the two widths is given.

    Reference: Luong et al. (2015), section 3.1, equation 8.

    >>> import torch
    >>> q, k = torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 1.0]])
    >>> MultiplicativeAttention()(q, k, torch.tensor([[5.0]]))
    tensor([[5.]])
    """

    @checked
    def __init__(
        self, d_q: Positive | None = None, d_k: Positive | None = None
    ):
        """Make the matrix of the score, if it has one."""
        super().__init__()
        if (d_q is None) != (d_k is None):
            raise ValueError(
                "a matrix needs both widths, and a plain product neither, "
                f"but d_q={d_q} and d_k={d_k}"
            )
        self.W = None
        if d_q is not None and d_k is not None:
            self.W = nn.Linear(d_k, d_q, bias=False)

    @checked
    def keys(self, k: Keys) -> Float[Tensor, "*#batch n_k d_q"]:
        """The keys as the queries meet them: W k."""
        if self.W is None:
            return k
        check_enters("k", k, self.W)
        return projected(self.W, k)

    @checked
    def weights(
        self,
        q: Queries,
        k: Keys,
        *,
        mask: Mask = None,
        bias: Bias = None,
        causal: bool = False,
    ) -> Table:
        """The attention weights, (..., n_q, n_k)."""
        k = as_asked(self.keys(k), q)
        return attention_weights(
            q, k, mask=mask, bias=bias, causal=causal, scale=1.0
        )

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
        """Attend, (..., n_q, d_v); arguments as for `attention`."""
        k = as_asked(self.keys(k), q)
        return attention(
            q, k, v, mask=mask, bias=bias, causal=causal, scale=1.0
        )


def as_asked(k: Tensor, q: Tensor) -> Tensor:
    """The keys in the type of the queries, where autocast chose another."""
    return k.to(q.dtype) if is_autocast(k) else k
