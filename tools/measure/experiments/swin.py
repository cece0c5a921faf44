"""What windows do to a model of pictures, and what only the shift can learn.

Two tasks on pictures of 6 by 12 tokens. *Fill*: a picture of a few coloured
regions, most of it hidden, is to be completed; a model is trained with all
tokens in one window and read with smaller ones put in, or trained with them,
shifted in its second layer or not. *Neighbour*: each token holds a digit, and
must say the digit of the token beside it.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selfattn import MultiHeadAttention, fused_attention
from selfattn.blocks import EncoderBlock
from selfattn.efficient.swin import swin_bias, swin_mask
from selfattn.layers import LayerNorm
from tools.measure.experiments._budgets import flat, trained

ABOUT = (
    "Two tasks on pictures of 6 by 12 tokens, each trained with Adam and read "
    "after three budgets of steps. The model: two pre-norm blocks of 4 heads, "
    "24 features, with a relative position bias and no other positions. Arms: "
    "full, both layers in one window of 6 by 12; shifted, windows in the "
    "first layer and the same moved by half in the second; fixed, the same "
    "windows in both. Fill: every pixel has the colour of the nearest of 6 "
    "sites, each of one of 8 colours; three quarters of the pixels are "
    "hidden and must be told, 8 new pictures a step. On 100 new pictures, "
    "the loss a hidden pixel in nats (loss) and the share right (right); of "
    "the model with one window also with windows put in, the second layer's "
    "shifted or not, its bias cut to them (put in shifted 3x4, and so on); of "
    "the others the share right on pixels that touch a border of their "
    "window in the first layer, the picture's edge aside (border), and on "
    "the rest (inner). Neighbour: each token holds one of 8 digits and must "
    "say the digit of the token that lies so many rows below and columns to "
    "the right; those whose neighbour would lie outside are not asked. "
    "Windows of 3 by 4. On 100 new pictures, the share right where both lie "
    "in one window of the first layer (within) and where not (across); where "
    "they share no window in either layer (neither). Also with all windows "
    "moved when read: without a shift, by half a window, where neighbours "
    "were across and now lie within (freed), and were within and now lie "
    "across (caught); with it, by a row and a column, where they shared no "
    "window in either layer, and now do (freed)."
)
SEEDS = range(5)
RATES = (0.003, 0.01, 0.02)
GRID = (6, 12)
WINDOWS = {"2x2": (2, 2), "3x4": (3, 4), "3x6": (3, 6)}
OFFSETS = {"right": (0, 1), "diagonal": (1, 1)}
SETTINGS: list[dict[str, Any]] = [
    {"task": "fill", "arm": "full", "rate": rate} for rate in RATES
]
SETTINGS += [
    {"task": "fill", "arm": arm, "window": window, "rate": rate}
    for arm in ("shifted", "fixed")
    for window in WINDOWS
    for rate in RATES
]
SETTINGS += [
    {"task": "neighbour", "arm": arm, "offset": offset, "rate": rate}
    for arm in ("shifted", "fixed")
    for offset in OFFSETS
    for rate in RATES
]
SMALLEST = SETTINGS[-4]
# Another processor adds in another order, and hundreds of steps of Adam
# amplify the last digit; shares near one and near chance move little.
TOLERANCE = 0.03

BUDGETS = {"fill": (40, 80, 160), "neighbour": (50, 100, 200)}
D, HEADS, COLOURS, SITES, HIDDEN = 24, 4, 8, 6, 0.75
PICTURES, READ = 8, 100


class Attend(nn.Module):
    """Attention in windows that can be changed while the model stays."""

    def __init__(self, window: tuple[int, int], shift: tuple[int, int]):
        """One number for each offset and head, zeros at first."""
        super().__init__()
        self.window, self.shift = window, shift
        size = (2 * side - 1 for side in window)
        self.numbers = nn.Parameter(torch.zeros(HEADS, *size))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, **rest: Any) -> Tensor:
        """What `swin_attention` computes, soonest on so few tokens."""
        if any(x is not None and x is not False for x in rest.values()):
            raise ValueError(f"these models have no {', '.join(rest)}")
        bias = swin_bias(self.numbers, GRID)
        mask = same(self.window, self.shift)
        return fused_attention(q, k, v, mask=mask, bias=bias)


def half(window: tuple[int, int]) -> tuple[int, int]:
    """By how much windows are moved."""
    return window[0] // 2, window[1] // 2


class Model(nn.Module):
    """Numbers of pixels to scores of colours, token by token."""

    def __init__(self, window: tuple[int, int], *, shifted: bool):
        """Two blocks; the second one's windows are shifted or not."""
        super().__init__()
        second = half(window) if shifted else (0, 0)
        self.attends = [Attend(window, (0, 0)), Attend(window, second)]
        self.embed = nn.Embedding(COLOURS + 1, D)
        self.blocks = nn.Sequential(
            *(
                EncoderBlock(
                    D,
                    HEADS,
                    2 * D,
                    pre=True,
                    multihead=partial(MultiHeadAttention, attend=attend),
                )
                for attend in self.attends
            )
        )
        self.read = nn.Sequential(LayerNorm(D), nn.Linear(D, COLOURS))

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the colours, (batch, n, 8)."""
        return self.read(self.blocks(self.embed(x)))

    def put(self, window: tuple[int, int], *shifts: tuple[int, int]) -> None:
        """Look through other windows from now on."""
        for attend, shift in zip(self.attends, shifts, strict=True):
            attend.window, attend.shift = window, shift


def places() -> Tensor:
    """Row and column of each token, (72, 2)."""
    return torch.cartesian_prod(*map(torch.arange, GRID))


def regions(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pictures with most pixels hidden, and as they are, (count, 72)."""
    size = torch.tensor(GRID)
    sites = torch.rand(count, SITES, 2, generator=generator) * size - 0.5
    apart = torch.cdist(places().float().expand(count, -1, -1), sites)
    colours = torch.randint(COLOURS, (count, SITES), generator=generator)
    picture = colours.gather(-1, apart.argmin(dim=-1))
    hidden = torch.rand(picture.shape, generator=generator) < HIDDEN
    return picture.masked_fill(hidden, COLOURS), picture


same = cache(partial(swin_mask, GRID))  # who shares a window with whom


def at_border(window: tuple[int, int]) -> Tensor:
    """Tokens beside another window of the first layer, (72,)."""
    near = torch.cdist(*[places().float()] * 2, p=1) == 1
    return (near & ~same(window, (0, 0))).any(dim=-1)


def fill_task(
    seed: int, arm: str, window: str = "all"
) -> tuple[Model, Iterator[Tensor], Callable]:
    """The model, its losses, and how it is read."""
    own = WINDOWS.get(window, GRID)
    model = Model(own, shifted=arm == "shifted")
    generator = torch.Generator().manual_seed(seed)
    new = regions(READ, torch.Generator().manual_seed(9000 + seed))

    def losses() -> Iterator[Tensor]:
        while True:
            x, target = regions(PICTURES, generator)
            hidden = x == COLOURS
            yield F.cross_entropy(model(x)[hidden], target[hidden])

    def read() -> dict[str, float]:
        found = scored(model, *new)
        beside = at_border(own)
        if arm == "full":
            return found | put_in(model, *new)
        return found | {
            "border": share_right(model, *new, beside),
            "inner": share_right(model, *new, ~beside),
        }

    return model, losses(), read


def scored(
    model: Model, shown: Tensor, whole: Tensor, name: str = ""
) -> dict[str, float]:
    """The loss a hidden pixel, and the share right."""
    scores, asked = model(shown), shown == COLOURS
    loss = F.cross_entropy(scores[asked], whole[asked]).item()
    hit = (scores.argmax(dim=-1) == whole)[asked].float().mean().item()
    return {f"{name}loss": loss, f"{name}right": hit}


def share_right(
    model: Model, shown: Tensor, whole: Tensor, which: Tensor
) -> float:
    """Of some hidden pixels, the share right; of none, 0."""
    hit = model(shown).argmax(dim=-1) == whole
    here = hit[(shown == COLOURS) & which]
    return here.float().mean().item() if len(here) else 0.0


def put_in(model: Model, shown: Tensor, whole: Tensor) -> dict[str, float]:
    """The same with each of the windows put in, and taken out again."""
    found: dict[str, float] = {}
    for name, size in WINDOWS.items():
        for words, shift in (("shifted", half(size)), ("fixed", (0, 0))):
            model.put(size, (0, 0), shift)
            found |= scored(model, shown, whole, f"put in {words} {name}, ")
    model.put(GRID, (0, 0), (0, 0))
    return found


def neighbours(
    count: int, offset: tuple[int, int], generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Digits, (count, 72); which tokens have a neighbour, and which one."""
    digits = torch.randint(
        COLOURS, (count, len(places())), generator=generator
    )
    there = places() + torch.tensor(offset)
    asks = (there < torch.tensor(GRID)).all(dim=-1).nonzero().flatten()
    whom = there[asks, 0] * GRID[1] + there[asks, 1]
    return digits, digits[:, whom], asks, whom


def neighbour_task(
    seed: int, arm: str, offset: str
) -> tuple[Model, Iterator[Tensor], Callable]:
    """The model, its losses, and how it is read."""
    window = WINDOWS["3x4"]
    model = Model(window, shifted=arm == "shifted")
    generator = torch.Generator().manual_seed(seed)
    again = torch.Generator().manual_seed(9000 + seed)
    new, right, asks, whom = neighbours(READ, OFFSETS[offset], again)

    def losses() -> Iterator[Tensor]:
        while True:
            x, target, *_ = neighbours(PICTURES, OFFSETS[offset], generator)
            yield F.cross_entropy(model(x)[:, asks].mT, target)

    def shares(**which: Tensor) -> dict[str, float]:
        hit = (model(new)[:, asks].argmax(dim=-1) == right).float().mean(0)
        return {
            name: hit[pairs].mean().item()
            for name, pairs in which.items()
            if pairs.any()
        }

    return model, losses(), partial(by_place, model, arm, asks, whom, shares)


def by_place(
    model: Model, arm: str, asks: Tensor, whom: Tensor, shares: Callable
) -> dict[str, float]:
    """Shares by where the neighbour lies, and with all windows moved."""
    window = WINDOWS["3x4"]
    moved = half(window)
    first, second = (same(window, s)[asks, whom] for s in ((0, 0), moved))
    neither = ~first & ~second
    found = shares(within=first, across=~first, neither=neither)
    if arm == "fixed":
        model.put(window, moved, moved)
        found |= shares(freed=~first & second, caught=first & ~second)
        model.put(window, (0, 0), (0, 0))
    else:
        model.put(window, (1, 1), (moved[0] + 1, moved[1] + 1))
        found |= shares(freed=neither)
        model.put(window, (0, 0), moved)
    return found


def run(seed: int, *, task: str, rate: float, **arm: Any) -> dict[str, float]:
    """Train once, and read at each budget."""
    torch.manual_seed(seed)
    made = fill_task if task == "fill" else neighbour_task
    model, losses, read = made(seed, **arm)
    return flat(trained(model, losses, rate, BUDGETS[task], read))
