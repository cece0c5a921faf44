"""All is chosen by words in a config; post-norm, dropout paths, a tuple."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

NORMS = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
BENDS = {"relu": torch.relu, "silu": nn.functional.silu, "tanh": torch.tanh}


@dataclass(frozen=True, kw_only=True)
class LayerConfig:
    width: int
    heads: int
    inner: int
    norm: Literal["layer", "rms"] = "layer"
    bend: Literal["relu", "silu", "tanh"] = "relu"
    where: Literal["pre", "post"] = "post"
    survival: float = 1.0


class Sublayer(nn.Module):
    """Residual, norm and a path that is sometimes not taken."""

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.config = config
        self.norm = NORMS[config.norm](config.width)

    def body(self, x: Tensor, *rest: Tensor | None) -> Tensor:
        raise NotImplementedError

    def path(self, y: Tensor) -> Tensor:
        rate = self.config.survival
        if not self.training or rate == 1.0:
            return y
        taken = torch.rand(y.shape[0], 1, 1, device=y.device) < rate
        return y * taken / rate

    def forward(self, x: Tensor, *rest: Tensor | None) -> Tensor:
        if self.config.where == "pre":
            return x + self.path(self.body(self.norm(x), *rest))
        return self.norm(x + self.path(self.body(x, *rest)))


class Mix(Sublayer):
    def __init__(self, config: LayerConfig) -> None:
        super().__init__(config)
        width = config.width
        self.ask = nn.Linear(width, width)
        self.answer = nn.Linear(width, 2 * width)
        self.merge = nn.Linear(width, width)

    def body(self, x: Tensor, *rest: Tensor | None) -> Tensor:
        (shown,) = rest
        size = (self.config.heads, -1)
        q = self.ask(x).unflatten(-1, size).transpose(1, 2)
        kv = self.answer(x).unflatten(-1, size).transpose(1, 2)
        k, v = kv.chunk(2, dim=-1)  # a head's key and value lie together
        logits = torch.matmul(q, k.mT) / k.shape[-1] ** 0.5
        if shown is not None:
            logits = logits.masked_fill(~shown.unsqueeze(1), -torch.inf)
        y = torch.matmul(logits.softmax(-1), v)
        return self.merge(y.transpose(1, 2).flatten(2))


class Think(Sublayer):
    def __init__(self, config: LayerConfig) -> None:
        super().__init__(config)
        self.wide = nn.Linear(config.width, config.inner)
        self.narrow = nn.Linear(config.inner, config.width)

    def body(self, x: Tensor, *rest: Tensor | None) -> Tensor:
        return self.narrow(BENDS[self.config.bend](self.wide(x)))


class ConfiguredLayer(nn.Module):
    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.mix, self.think = Mix(config), Think(config)

    def forward(
        self, states: Tensor, shown: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        return self.think(self.mix(states, shown)), shown


PATIENT = ConfiguredLayer(
    LayerConfig(width=10, heads=2, inner=13, norm="rms", bend="silu")
)
FACTS = {
    "order": "post",
    "layout": "BND",
    "mask": "keep",
    "mask_axes": "BNN",
    "norms": ["mix.norm", "think.norm"],
    "n_heads": 2,
}
INPUTS = {"states": "b n 10", "shown?": "keep b n n"}
