"""Shifted windows."""

import contextlib
import copy
import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from selfattn import (
    MultiHeadAttention,
    attention,
    fused_attention,
    swin_attention,
)
from selfattn.efficient.swin import swin_bias, swin_mask
from tools.measure.bench.race import HEADS, Around, D, Race


def races() -> Iterator[Race]:
    """Layers of shifted windows against a layer that attends to all."""
    # Grids that divide by 7: on others theirs attend to made-up tokens.
    for grid in ((56, 56), (42, 70)):
        for shift in (0, 3):
            race = swin_layers(grid, shift)
            exact = copy.deepcopy(race["swin_attention"]).double()
            numbers = exact.attend.keywords["relative_bias"].detach().double()
            table = swin_bias(numbers, grid)
            mask = swin_mask(grid, (7, 7), (shift, shift))
            exact.attend = partial(swin_table, table=table, hidden=mask)
            fair = dict.fromkeys(race, exact)
            fair["all tokens"] = copy.deepcopy(race["all tokens"]).double()
            for training in (False, True):
                name = f"{grid[0]}x{grid[1]}, shift {shift}"
                n = math.prod(grid)
                yield Race(name, n, training, race, fair, layer=True)


def swin_table(q, k, v, *, mask, bias, causal, table, hidden):
    """The definition, for the last queries."""
    last = slice(-q.shape[-2], None)
    return attention(q, k, v, mask=hidden[last], bias=table[:, last])


def swin_layers(grid, shift) -> dict[str, Callable[..., Tensor]]:
    """Everybody's layer, with the same weights: 7 x 7 windows."""
    torch.manual_seed(1)
    numbers = nn.Parameter(torch.randn(HEADS, 13, 13))
    ours = MultiHeadAttention(HEADS * D, HEADS, projection_bias=True)
    every = copy.deepcopy(ours)
    every.attend = fused_attention
    options = {"grid": grid, "window": (7, 7), "shift": (shift, shift)}
    ours.attend = partial(swin_attention, **options, relative_bias=numbers)
    ours.relative_bias = numbers  # in sight, so that it has a gradient
    race = {"all tokens": every, "swin_attention": ours}
    for name, peer in (("transformers", swin_hf), ("timm", swin_timm)):
        with contextlib.suppress(ImportError):
            race[name] = peer(ours, numbers.detach().flatten(1).T, grid, shift)
    return race


def swin_hf(ours, numbers, grid, shift) -> Callable[..., Tensor]:
    """What SwinLayer of transformers does between norm and residual."""
    from transformers import SwinConfig
    from transformers.models.swin import modeling_swin as swin

    config = SwinConfig(window_size=7)
    config._attn_implementation = "sdpa"
    layer = swin.SwinLayer(config, HEADS * D, grid, HEADS, shift_size=shift)
    for name in "qkvo":
        weights = getattr(ours, f"W_{name}").state_dict()
        getattr(layer.attention, f"{name}_proj").load_state_dict(weights)
    bias = layer.attention.relative_position_bias
    bias.relative_position_bias_table.data.copy_(numbers)

    # These grids divide by 7: nothing is added at the edge.
    rows, columns = grid
    mask = layer.get_attn_mask(rows, columns, torch.float32, numbers.device)

    def run(layer, x):
        x = x.view(1, *grid, -1)
        x = swin.window_partition(layer.cyclic_shift(x), 7)
        x, _ = layer.attention(x.view(-1, 49, HEADS * D), mask)
        x = x.view(-1, 7, 7, HEADS * D)
        x = swin.window_reverse(x, 7, rows, columns)
        x = layer.cyclic_shift(x, reverse=True)
        return x.reshape(1, -1, HEADS * D)

    return Around(layer, run)


def swin_timm(ours, numbers, grid, shift) -> Callable[..., Tensor]:
    """What SwinTransformerBlock of timm does between norm and residual."""
    from timm.models.swin_transformer import SwinTransformerBlock

    layer = SwinTransformerBlock(
        HEADS * D, grid, HEADS, window_size=7, shift_size=shift
    )
    three = [getattr(ours, f"W_{name}").state_dict() for name in "qkv"]
    layer.attn.qkv.load_state_dict(
        {k: torch.cat([x[k] for x in three]) for k in three[0]}
    )
    layer.attn.proj.load_state_dict(ours.W_o.state_dict())
    layer.attn.relative_position_bias_table.data.copy_(numbers)
    return Around(
        layer, lambda f, x: f._attn(x.view(1, *grid, -1)).reshape(x.shape)
    )
