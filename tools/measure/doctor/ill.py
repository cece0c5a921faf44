"""Packages that are really ill in some way, and how one of each is drawn.

All are optional: `audit` examines those that are installed, and keeps
what it found of the others before. ``expected`` is what the doctor calls
them, or what they look like to it if more than one thing is wrong.
"""

import contextlib
import io
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tools.measure.doctor.peer import (
    Contiguous,
    Made,
    config,
    heads,
    of_bert,
    peer,
)

OWN = {"formula": "own", "layout": "BHND"}


def quietly(make: Callable[[], Any]) -> Any:
    """Make something that has much to say."""
    with contextlib.redirect_stdout(io.StringIO()):
        return make()


def favor(seed: int, causal: bool) -> Callable[..., Tensor]:
    """Performer's attention for keys of any width, the same every time."""
    from performer_pytorch import FastAttention

    made: dict[int, nn.Module] = {}

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        d = q.shape[-1]
        if d not in made:
            torch.manual_seed(seed)
            made[d] = quietly(lambda: FastAttention(d, causal=causal))
        return made[d].to(q.dtype)(q, k, v)

    return attend


@peer(
    "FAVOR+ with a flag",
    "performer-pytorch",
    "efficient",
    "later keys are felt",
    "causal, keys are divided by the largest of all positions; and 1e-6 in "
    "the denominator is not small beside features of 1e-4",
)
def favor_with_a_flag(draw: random.Random) -> Made:
    """Two of them, of which a flag takes the causal one."""
    seed = draw.randrange(1000)
    whole, past = (favor(seed, causal) for causal in (False, True))

    def attend(
        q: Tensor, k: Tensor, v: Tensor, causal: bool = False
    ) -> Tensor:
        return (past if causal else whole)(q, k, v)

    return attend, OWN, {"seed": seed}


@peer(
    "FAVOR+",
    "performer-pytorch",
    "efficient",
    "nearly the plain mean",
    "of loud queries and keys, only the 1e-4 that is added is left",
)
def favor_alone(draw: random.Random) -> Made:
    """Without a causal mask."""
    seed = draw.randrange(1000)
    return favor(seed, causal=False), OWN, {"seed": seed}


@peer(
    "Performer's layer",
    "performer-pytorch",
    "self-attention",
    "padding ignored",
    "the values of padding are wiped out, its keys stay in the denominator",
)
def performer_layer(draw: random.Random) -> Made:
    """With a mask for padding."""
    from performer_pytorch import SelfAttention

    size = heads(draw)
    d_model, n_heads = size["d_model"], size["n_heads"]
    made = quietly(
        lambda: SelfAttention(
            d_model, heads=n_heads, dim_head=d_model // n_heads
        )
    )
    facts = {
        "formula": "own",
        "causal": False,
        "layout": "BND",
        "names": {"padding": "mask", "mask": None, "context": None},
        "padding": "keep",
        "takes": ["padding", "float64"],
    }
    return made, facts, size


@peer(
    "linear_attn",
    "linear-attention-transformer",
    "efficient",
    "rows sum to one over root d",
    "softmax of queries and of keys makes weights that sum to one already",
)
def linear_attn(draw: random.Random) -> Made:
    """Without a mask."""
    from linear_attention_transformer import linear_attention_transformer

    whole = linear_attention_transformer.linear_attn

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return whole(q, k, v)

    return attend, OWN, {}


@peer(
    "linear_attn with a mask, times the root",
    "linear-attention-transformer",
    "efficient",
    "padding written into keys and values",
    "masked_fill_ writes into what the caller owns",
)
def linear_attn_masked(draw: random.Random) -> Made:
    """Its output is multiplied by what it should not be divided by."""
    from linear_attention_transformer import linear_attention_transformer

    whole = linear_attention_transformer.linear_attn

    def attend(
        q: Tensor, k: Tensor, v: Tensor, kv_mask: Tensor | None = None
    ) -> Tensor:
        return whole(q, k, v, kv_mask) * q.shape[-1] ** 0.5

    return attend, {**OWN, "padding": "keep"}, {}


@peer(
    "causal_linear_attn",
    "linear-attention-transformer",
    "efficient",
    "exponentials as they are",
    "exp(k) without its maximum, and a denominator of at least a thousandth",
)
def causal_linear_attn(draw: random.Random) -> Made:
    """Token by token, as the package's layer calls it."""
    from linear_attention_transformer import linear_attention_transformer

    past = linear_attention_transformer.causal_linear_attn

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return past(q, k, v, bucket_size=1)

    return attend, {**OWN, "causal": True}, {}


@peer(
    "LocalAttention that pads by itself",
    "local-attention",
    "efficient",
    "padding of the last block is seen",
    "the zeros that autopad brings are hidden only if a mask is given, too",
)
def local(draw: random.Random) -> Made:
    """In exact windows of 64, which see 64 keys to each side and itself."""
    from local_attention import LocalAttention

    def attend(
        q: Tensor, k: Tensor, v: Tensor, causal: bool = False
    ) -> Tensor:
        layer = LocalAttention(
            64, causal=causal, autopad=True, exact_windowsize=True
        )
        return layer.eval()(q, k, v)

    return attend, {"window": 65, "square": True}, {}


@peer(
    "LocalAttention of an even context",
    "pytorch-fast-transformers",
    "efficient",
    "one key too many behind",
    "a context of 14 sees 7 keys back and 6 ahead; its mask is a whole table",
)
def even_context(draw: random.Random) -> Made:
    """Whose documentation says: abs(i - j) < context / 2."""
    from fast_transformers.attention import LocalAttention
    from fast_transformers.masking import (
        FullMask,
        LengthMask,
        TriangularCausalMask,
    )

    layer = LocalAttention(14).eval()

    def attend(
        q: Tensor, k: Tensor, v: Tensor, causal: bool = False
    ) -> Tensor:
        n, front = q.shape[-2], q.shape[:-2]
        q, k, v = (x.reshape(-1, n, 1, x.shape[-1]) for x in (q, k, v))
        lengths = LengthMask(torch.full((len(q),), n))
        mask = TriangularCausalMask(n) if causal else FullMask(n)
        made = layer(q, k, v, mask, lengths, lengths)
        return made[:, :, 0].reshape(*front, n, -1)

    return attend, {"window": 7, "square": True}, {}


@peer(
    "Linformer with a mask",
    "linformer",
    "self-attention",
    "mask ignored",
    "whatever is handed over by name is swallowed by **kwargs",
)
def linformer(draw: random.Random) -> Made:
    """A layer that takes a mask, and anything else."""
    from linformer import LinformerSelfAttention

    size = heads(draw)
    made = LinformerSelfAttention(
        size["d_model"], 64, k=16, heads=size["n_heads"]
    )
    facts = {
        "formula": "own",
        "causal": False,
        "layout": "BND",
        "names": {"mask": "mask", "context": None},
        "mask": "keep",
        "mask_axes": "NN",
        "takes": ["mask", "float64"],
    }
    return made, facts, size


def shifted(n_q: int, n_k: int, size: int, shift: int) -> Tensor:
    """Windows of some tokens, of which the first begins before the text."""
    window = (torch.arange(n_k) + size - shift) // size
    return window[n_k - n_q :, None] == window


class OneColumn(nn.Module):
    """Swin's attention on a picture that is one column of pixels."""

    def __init__(self, block: nn.Module, d_model: int):
        super().__init__()
        self.block, self.d_model = block, d_model

    def forward(self, x: Tensor) -> Tensor:
        """Give it a second axis, and take it away again."""
        return self.block._attn(x[:, :, None])[:, :, 0]


@peer(
    "Swin's shifted windows",
    "timm",
    "self-attention",
    "rolled before it is padded",
    "on grids that windows do not divide, opposite edges see each other",
)
def swin_shifted(draw: random.Random) -> Made:
    """A block with shifted windows, on a grid of any height."""
    from timm.models.swin_transformer import SwinTransformerBlock

    size = heads(draw)
    setting = size | {"window": 4, "shift": draw.choice((1, 2, 3))}
    block = SwinTransformerBlock(
        size["d_model"],
        (64, 1),
        size["n_heads"],
        window_size=(4, 1),
        shift_size=(setting["shift"], 0),
        dynamic_mask=True,
        always_partition=True,
    )
    facts = {
        "formula": "own",
        "causal": False,
        "layout": "BND",
        "table": partial(shifted, size=4, shift=setting["shift"]),
        "takes": ["float64"],
    }
    return OneColumn(block, size["d_model"]), facts, setting


@peer(
    "GPT-2's layer, not fused",
    "transformers",
    "self-attention",
    "not causal",
    "without a mask only its fused path is causal; its model hands one in",
)
def gpt2_eager(draw: random.Random) -> Made:
    """The attention of GPT-2 by the path that returns weights."""
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

    size = heads(draw)
    setting = {"n_embd": size["d_model"], "n_head": size["n_heads"]}
    chosen = config("GPT2Config", attn_implementation="eager", **setting)
    facts = of_bert(setting) | {"causal": True, "takes": []}
    return Contiguous(GPT2Attention(chosen, layer_idx=0)), facts, setting


ILL = (
    favor_with_a_flag,
    favor_alone,
    performer_layer,
    linear_attn,
    linear_attn_masked,
    causal_linear_attn,
    local,
    even_context,
    linformer,
    swin_shifted,
    gpt2_eager,
)
