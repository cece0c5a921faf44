"""Norms, and blocks that are made of norms, attention and networks."""

import torch
from torch import nn

from selfattn.doctor.museum.entry import room
from selfattn.masks import causal_mask

D = 8


@room(
    "harvardnlp/annotated-transformer#122",
    "2024-04",
    kind="layer-norm",
    named="sample deviation plus eps",
)
class DeviationOfASample(nn.Module):
    """A famous tutorial's LayerNorm divides by std() + eps.

    PyTorch's std() divides by d - 1, and eps belongs under the root. Many
    copied it, BERT-pytorch among them.
    """

    def __init__(self, d: int = D, eps: float = 1e-6):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))
        self.shift = nn.Parameter(torch.zeros(d))
        self.eps = eps

    def forward(self, x):
        """Centre, divide by what is not quite the deviation."""
        centred = x - x.mean(dim=-1, keepdim=True)
        deviation = x.std(dim=-1, keepdim=True) + self.eps
        return centred / deviation * self.gain + self.shift


@room(
    "131250208/TPlinker-joint-extraction#37",
    "2021-04",
    kind="layer-norm",
    named="variance squared",
)
def squared_where_a_root_was_meant(x, gain, shift, eps):
    """** 2 stood for ** 0.5. It might not matter much, said the author."""
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return centred / (variance + eps) ** 2 * gain + shift


@room(
    "pytorch/pytorch#pull-134106",
    "2024-08",
    kind="rms-norm",
    named="squares in half precision",
    takes=["float16", "bfloat16", "float64", "eps"],
)
def squares_in_float16(x, gain, eps):
    """nn.RMSNorm in float16 gave wrong answers in a Llama, which upcasts.

    The square of 256 does not fit into float16.
    """
    if x.dtype == torch.bfloat16:  # whose range is that of float32
        wide = x.float()
        square = wide.square().mean(dim=-1, keepdim=True)
        return (wide * (square + eps).rsqrt() * gain).to(x.dtype)
    return x * (x.square().mean(dim=-1, keepdim=True) + eps).rsqrt() * gain


class Parts(nn.Module):
    """The parts of an encoder block, not joined yet."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(D, 2, batch_first=True)
        self.norm_1, self.norm_2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.mlp = nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, D))

    def look(self, x, mask=None):
        """Self-attention, with a mask that is True where one may not look."""
        return self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]


@room(
    "pytorch/pytorch#61165",
    "2021-07",
    kind="encoder-block",
    named="norm on the path",
    order="pre",
    mask="block",
)
class NormOnThePath(Parts):
    """norm_first=True was new, and normalised the path with the sublayer.

    src = norm1(src) left no copy of what was to be added. The same was found
    in Burn's, in Gluon NLP's and in others' blocks.
    """

    def forward(self, x, attn_mask=None):
        """Overwrite x by its norm, twice."""
        x = self.norm_1(x)
        x = x + self.look(x, attn_mask)
        x = self.norm_2(x)
        return x + self.mlp(x)


@room(
    "SHI-Labs/Compact-Transformers#25",
    "2021-09",
    kind="encoder-block",
    named="second residual after its norm",
    order="pre",
    mask="block",
)
class HalfThePath(Parts):
    """After a merge that went wrong, the second path began behind its norm."""

    def forward(self, x, attn_mask=None):
        """Overwrite x by its norm, the second time only."""
        x = x + self.look(self.norm_1(x), attn_mask)
        x = self.norm_2(x)
        return x + self.mlp(x)


@room(
    "keras-team/keras-io#1256",
    "2023-02",
    kind="encoder-block",
    named="norm behind the sublayer",
    order="post",
    mask="block",
)
class NormInTheWrongBrackets(Parts):
    """A reader held an example's block against post-norm.

    It normalises what a sublayer made, before it is added.
    """

    def forward(self, x, attn_mask=None):
        """Normalise what is added."""
        x = x + self.norm_1(self.look(x, attn_mask))
        return x + self.norm_2(self.mlp(x))


@room(
    "keras-team/keras-io#pull-1046",
    "2022-08",
    kind="decoder-block",
    named="mask of the context not passed on",
    order="post",
    mask="block",
)
class MaskOfTheWrongText(nn.Module):
    """A translator's decoder never got the mask of what it translates.

    It had that of its own text alone, so that it read padding like words.
    """

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(D, 2, batch_first=True)
        self.cross_attention = nn.MultiheadAttention(D, 2, batch_first=True)
        self.norm_1, self.norm_2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.norm_3 = nn.LayerNorm(D)
        self.mlp = nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, D))

    def forward(self, x, memory, memory_mask=None):
        """Take the mask, and leave it."""
        future = ~causal_mask(x.shape[1], x.shape[1])
        seen = self.attention(x, x, x, attn_mask=future)[0]
        x = self.norm_1(x + seen)
        x = self.norm_2(x + self.cross_attention(x, memory, memory)[0])
        return self.norm_3(x + self.mlp(x))
