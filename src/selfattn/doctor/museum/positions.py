"""Tables of positions, rotations, and who adds them."""

import math

import torch
from torch import nn

from selfattn.doctor.museum.entry import room
from selfattn.positions import rope_halves, sinusoidal


def waves(angle):
    """A table with sines in the even features and cosines in the odd."""
    table = torch.zeros_like(angle)
    table[:, 0::2] = angle[:, 0::2].sin()
    table[:, 1::2] = angle[:, 1::2].cos()
    return table.float()


def counted(n, d_model):
    """Positions as a column, features as a row."""
    return torch.arange(n).double()[:, None], torch.arange(d_model).double()


@room(
    "jadore801120/attention-is-all-you-need-pytorch#32",
    "2017-11",
    kind="sinusoidal",
    named="cosines one step on",
    layout="pairs",
)
def twice_the_feature(n, d_model):
    """The exponent was 2i / d of every feature i, instead of every pair i."""
    p, i = counted(n, d_model)
    return waves(p / 10_000 ** (2 * i / d_model))


@room(
    "maxjcohen/transformer#62",
    "2023-03",
    kind="sinusoidal",
    named="base of a thousand",
    layout="pairs",
)
def a_nought_too_few(n, d_model):
    """The base was 1000; and the cosines' exponent was off by one, too."""
    p, i = counted(n, d_model)
    return waves(p / 1_000 ** (2 * (i // 2) / d_model))


@room(
    "ivanvovk/WaveGrad#12",
    "2020-11",
    kind="sinusoidal",
    named="exponent and base exchanged",
    layout="pairs",
)
def exponent_to_the_base(n, d_model):
    """Exponents ** 1e-4 stood for 1e-4 ** exponents; it sang all the same."""
    p, i = counted(n, d_model)
    return waves(p * (2 * (i // 2) / d_model) ** 1e-4)


@room(
    "zju3dv/LoFTR#41",
    "2021-07",
    kind="sinusoidal",
    named="divided before it is halved",
    layout="pairs",
)
def minus_log_over_d_over_two(n, d_model):
    """-log(10000) / d // 2 is -1; meant was -log(10000) / (d // 2).

    Trained again without the bug, the model was better by half a point.
    """
    p, i = counted(n, d_model)
    step = -math.log(10_000.0) / d_model // 2 if d_model > 1 else -1.0
    return waves(p * torch.exp(2 * (i // 2) * step))


@room(
    "Kyubyong/transformer#pull-81",
    "2019-03",
    kind="sinusoidal",
    named="position divided as a whole number",
    layout="pairs",
)
def whole_numbers_divided(n, d_model):
    """The exponent 2i / d was divided as whole numbers, and so was 0."""
    p, i = counted(n, d_model)
    return waves(p / 10_000 ** (2 * (i // 2) // d_model))


@room(
    "Lightning-AI/pytorch-lightning#19138",
    "2023-12",
    kind="positions",
    named="positions count the texts",
    layout="BND",
)
class AlongTheBatch(nn.Module):
    """An example for language models told each text where it is in the batch.

    The table was for tokens in front; the example had the batch in front.
    And the sum was thrown away, so that nothing showed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pe", sinusoidal(50, 6)[:, None])

    def forward(self, x):
        """Add a row for each of what comes first."""
        return x + self.pe[: x.shape[0]]


@room(
    "facebookresearch/xformers#841",
    "2023-08",
    kind="rope",
    named="second axis is time",
    pairs="halves",
    layout="BHND",
)
def rotated_by_head(x, offset=0):
    """The axis that was rotated was that of the heads, not of the tokens.

    So each head stood at another position, and all tokens at the same. It
    came to light in OpenLM, which was built on it.
    """
    if x.ndim < 3:
        return rope_halves(x, offset=offset)
    return rope_halves(x.transpose(1, -2), offset=offset).transpose(1, -2)


@room(
    "EleutherAI/gpt-neox#1003",
    "2023-07",
    kind="rope",
    named="angles in low precision",
    pairs="halves",
)
def angles_in_half_precision(x, offset=0):
    """All of the angles' arithmetic was in float16 or bfloat16.

    Among 2048 positions, some cosines were off by 0.78.
    """
    n, d = x.shape[-2:]
    p = torch.arange(offset, offset + n).to(x.dtype)
    pair = torch.arange(0, d, 2).to(x.dtype)
    angle = p[:, None] * 10_000.0 ** (-pair / d)
    a, b = x.chunk(2, dim=-1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


@room(
    "baidu/ERNIE-Image#6",
    "2026-04",
    kind="rope",
    named="half of each convention",
    pairs="neighbours",
)
def halves_turned_by_the_angles_of_neighbours(x, offset=0):
    """A reader asks: angles are laid out in pairs, features turned in halves.

    Then the two features of a pair turn by different angles.
    """
    n, d = x.shape[-2:]
    p = torch.arange(offset, offset + n).double()
    pair = torch.arange(0, d, 2).double()
    angle = (p[:, None] * 10_000.0 ** (-pair / d)).repeat_interleave(2, -1)
    a, b = x.chunk(2, dim=-1)
    turned = torch.cat((-b, a), dim=-1)
    return x * angle.cos().to(x.dtype) + turned * angle.sin().to(x.dtype)
