"""Layers: what stands around attention in every block.

Normalisation, the residual path, and the feed-forward network. Attention
mixes tokens and works on none; the feed-forward network works on each token
and mixes none. The residual path carries x past both.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from selfattn.bound import Owner
from selfattn.called import answered, check_called, check_function
from selfattn.checks import check_eps
from selfattn.dot_product import widen
from selfattn.entering import (
    check_at_layer,
    check_enters,
    check_same_shape,
    check_width,
    made_alike,
    made_by,
)
from selfattn.mismatches import check_filled
from selfattn.signatures import Positive, Share, checked
from selfattn.spoilt import (
    a_token_each,
    is_spoilt,
    of_each_token,
    of_sound_tokens,
    projected,
    spared,
)

TINY = torch.finfo(torch.float32).tiny
Tokens = Float[Tensor, "*batch d"]
Features = Float[Tensor, "..."]
Activation = Callable[[Tensor], Tensor]


class LayerNorm(nn.Module):
    """Give each token mean 0 and variance 1 over its features, then rescale.

    y = (x - mean) / √(var + ε) · gain + shift, with the biased variance,
    Σ(x - mean)² / d. Squares of 1e20 have no number in float32: then they are
    made in float64, but not on a GPU, where a token of such gets zeros.
    Features that are large and nearly alike are centred twice: a mean of
    10,000 is off by up to half a thousandth in float32.

    Args:
        d: number of features.
        eps: added to the variance *under* the root. Added to the deviation
            outside it, tokens with little variance come out larger. With 0,
            a token whose features are all alike is NaN.

    Reference: Ba et al. (2016), section 3.

    >>> LayerNorm(2)(torch.tensor([[3.0, 5.0]])).detach().round(decimals=4)
    tensor([[-1.,  1.]])
    """

    @checked
    def __init__(self, d: Positive, *, eps: float = 1e-5):
        """Start as the plain normalisation: gain 1, shift 0."""
        super().__init__()
        check_eps(eps)
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d))
        self.shift = nn.Parameter(torch.zeros(d))

    @checked
    def forward(self, x: Tokens) -> Tokens:
        """Normalise over the last axis, (..., d) -> (..., d).

        Raises:
            ValueError: if x has another number of features.
        """
        # Not what a subclass may have in its place, which does more.
        gain, again = self.gain, partial(LayerNorm.forward, self)
        check_width("x", x, gain.numel())
        check_at_layer("x", x, gain)
        check_filled(self, x)
        [wide] = widen(x)
        centred = wide - wide.mean(dim=-1, keepdim=True)
        # Of a large mean, rounding leaves something: a number, with no slope.
        centred -= centred.detach().mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        if lacks_range(variance, self.eps):
            return again(x.double()).to(x.dtype)
        normal = centred / (variance + self.eps).sqrt()
        # Gain and shift at once: two steps would take longer.
        made = torch.addcmul(self.shift, normal, gain).to(x.dtype)
        if made.requires_grad and is_double(wide) and is_spoilt(variance):
            return of_sound_tokens(again, x, made, variance)
        return made


class RMSNorm(nn.Module):
    """Divide each token by the root mean square of its features.

    y = x / √(mean(x²) + ε) · gain: LayerNorm without centring and shift.
    Squares of large numbers are made as there.

    Args:
        d: number of features.
        eps: added to the mean square under the root.

    Reference: Zhang and Sennrich (2019), equation 4.

    >>> RMSNorm(2)(torch.tensor([[3.0, 4.0]])).detach().round(decimals=4)
    tensor([[0.8485, 1.1314]])
    """

    @checked
    def __init__(self, d: Positive, *, eps: float = 1e-6):
        """Start as the plain normalisation: gain 1."""
        super().__init__()
        check_eps(eps)
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d))

    @checked
    def forward(self, x: Tokens) -> Tokens:
        """Normalise over the last axis, (..., d) -> (..., d).

        Raises:
            ValueError: if x has another number of features.
        """
        # Not what a subclass may have in its place, which does more.
        gain, again = self.gain, partial(RMSNorm.forward, self)
        check_width("x", x, gain.numel())
        check_at_layer("x", x, gain)
        [wide] = widen(x)
        square = wide.square().mean(dim=-1, keepdim=True)
        if lacks_range(square, self.eps):
            return again(x.double()).to(x.dtype)
        made = (wide / (square + self.eps).sqrt() * gain).to(x.dtype)
        if made.requires_grad and is_double(wide) and is_spoilt(square):
            return of_sound_tokens(again, x, made, square)
        return made


def lacks_range(squares: Tensor, eps: float) -> bool:
    """Whether float32 has no number for a mean of squares, or for what is
    added to it: float64 may have one.

    >>> lacks_range(torch.tensor([torch.inf]), 1e-5)
    True
    >>> lacks_range(torch.tensor([1.0]), 1e-5)
    False
    """
    if is_double(squares):
        return False
    return eps < TINY or is_spoilt(squares)


def is_double(x: Tensor) -> bool:
    """Whether there is no wider type to compute in."""
    return x.dtype == torch.float64


class AddNorm(nn.Module):
    """The residual path around a sublayer, with its normalisation.

    Post (the 2017 paper): norm(x + sublayer(x)). The norm lies on the path.
    Pre (most large decoders): x + sublayer(norm(x)). The path is clear.

    Args:
        d_model: number of features.
        pre: where the norm stands.
        dropout: share of the sublayer's output dropped in training.
        norm: makes the normalisation from d_model; `LayerNorm`, `RMSNorm`,
            or `torch.nn.Identity` for none.

    References: Vaswani et al. (2017), section 3.1; Xiong et al. (2020).

    >>> add_norm = AddNorm(4, pre=True)
    >>> x = torch.ones(2, 3, 4)
    >>> torch.equal(add_norm(x, torch.zeros_like), x)  # the clear path
    True
    """

    @checked
    def __init__(
        self,
        d_model: Positive,
        *,
        pre: bool,
        dropout: Share = 0.0,
        norm: Callable[[int], nn.Module] = LayerNorm,
    ):
        """Make the norm; there is nothing else to learn."""
        super().__init__()
        self.pre = pre
        self.norm = made_by("norm", norm, d_model)
        self.dropout = nn.Dropout(dropout)

    @checked
    def forward(self, x: Tokens, sublayer: Activation) -> Tokens:
        """Add what the sublayer makes of x to x, (..., d) -> (..., d).

        Raises:
            ValueError: if the sublayer changes the shape: the sum would
                broadcast, or fail with a worse message.
        """
        check_function("sublayer", sublayer)
        norm = partial(made_alike, "norm", of_each_token(self.norm))
        # What works in place gets a copy: x is the caller's, and still needed.
        leaves_x = self.pre and leaves_it(self.norm)
        given = x if leaves_x else x.clone()
        given = norm(given) if self.pre else given
        made = answered("sublayer", sublayer, given)
        check_same_shape("sublayer", made, x)
        added = x + self.dropout(made)
        return added if self.pre else norm(added)


def leaves_it(norm: nn.Module) -> bool:
    """Whether a norm is known to leave what it is given as it is: a subclass
    may work in place, and so may a hook.
    """
    hooks = norm._forward_pre_hooks or norm._forward_hooks
    return type(norm) in (LayerNorm, RMSNorm) and not hooks


@checked
def relu(x: Features) -> Features:
    """max(0, x); at 0 its slope is 0, as that of `torch.relu` is."""
    return x.relu()


@checked
def gelu(x: Features) -> Features:
    """Gaussian error linear unit: x times P(a standard normal < x).

    Reference: Hendrycks and Gimpel (2016), section 2.

    >>> gelu(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    # Not 1 + erf: near -1 that has no digits left, in half precision none.
    [wide] = widen(x)
    return (wide * 0.5 * torch.erfc(-wide / math.sqrt(2))).to(x.dtype)


@checked
def swish(x: Features) -> Features:
    """The input times its own sigmoid, x σ(x); also called SiLU.

    Reference: Hendrycks and Gimpel (2016); Ramachandran et al. (2017).
    """
    # Of two numbers that are rounded, the product is rounded a third time.
    [wide] = widen(x)
    return (wide * torch.sigmoid(wide)).to(x.dtype)


class FeedForward(Owner):
    """Two linear maps with an activation between, for each token alone.

    Args:
        d_model: number of features in and out.
        d_ff: number of features between, usually 4 d_model.
        activation: applied between; `relu` in the 2017 paper, `gelu` since
            BERT and GPT.
        bias: whether the linear maps add one.
        dropout: share of the features between dropped in training.

    Reference: Vaswani et al. (2017), section 3.3, equation 2.

    >>> FeedForward(4, 16)(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    OWNED = ("activation",)

    @checked
    def __init__(
        self,
        d_model: Positive,
        d_ff: Positive,
        *,
        activation: Activation = relu,
        bias: bool = True,
        dropout: Share = 0.0,
    ):
        """Make the two maps."""
        super().__init__()
        self.W_in = nn.Linear(d_model, d_ff, bias=bias)
        self.W_out = nn.Linear(d_ff, d_model, bias=bias)
        check_called("activation", activation, "x")
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    @checked
    def forward(self, x: Tokens) -> Tokens:
        """Widen, bend, narrow: (..., d_model) -> (..., d_model)."""
        check_enters("x", x, self.W_in)

        def network(x: Tensor) -> Tensor:
            wide = self.W_in(spared(self.W_in, x))
            if not isinstance(wide, Tensor):
                a_token_each(self.W_in, wide, x)
            between = made_alike("activation", self.activation, wide)
            return self.W_out(self.dropout(between))

        return projected(network, x, x.shape[-1], of=self)


class SwiGLU(nn.Module):
    """A feed-forward network in which one map gates another.

    W_out (swish(W_gate x) · W_in x). Three matrices instead of two, so d_ff
    is usually taken as 8/3 d_model, for the same number of parameters.

    Args:
        d_model: number of features in and out.
        d_ff: number of features between.
        bias: whether the linear maps add one.

    Reference: Shazeer (2020), equation 6.

    >>> SwiGLU(4, 11)(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    @checked
    def __init__(
        self, d_model: Positive, d_ff: Positive, *, bias: bool = False
    ):
        """Make the three maps."""
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=bias)
        self.W_in = nn.Linear(d_model, d_ff, bias=bias)
        self.W_out = nn.Linear(d_ff, d_model, bias=bias)

    @checked
    def forward(self, x: Tokens) -> Tokens:
        """Widen twice, gate, narrow: (..., d_model) -> (..., d_model)."""
        check_enters("x", x, self.W_in)

        def network(x: Tensor) -> Tensor:
            gate = swish(self.W_gate(spared(self.W_gate, x)))
            wide = self.W_in(spared(self.W_in, x))
            if gate.shape != getattr(wide, "shape", None):
                a_token_each(self.W_in, wide, x)
                broadcast = 1 in (wide.shape[-1], gate.shape[-1])
                width = wide.shape[-1] if broadcast else None
                a_token_each(self.W_gate, gate, x, width)
            return self.W_out(gate * wide)

        return projected(network, x, x.shape[-1], of=self)
