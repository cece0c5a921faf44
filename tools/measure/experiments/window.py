"""What a window does to a trained model, and how far a look-up reaches.

Two tasks. *Language*: the model of the chapter on models is trained on
letters, with full attention or within a window, and read through windows of
several widths, with and without the first letter kept. *Look-up*: one token
asks for a name, the others hold a name and a digit each, and the asking
token must say the digit. A window hides the far ones; layers, a global token
or a full last layer may bring them back.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selfattn.data import language
from selfattn.efficient.longformer import longformer_mask
from selfattn.masks import causal_mask, window_mask
from tools.measure.experiments._budgets import flat, trained
from tools.measure.experiments._small_models import N, transformer

ABOUT = (
    "Two tasks, each trained with Adam and read after three budgets of steps. "
    "Language: letters of generated sentences, a decoder of two blocks, 16 "
    "texts of 48 a step, trained with full attention (window 0) or within a "
    "causal window; on 100 new texts, the loss per letter in nats from the "
    "26th letter on, as it was trained (loss), and for a model with full "
    "attention also within windows of 4, 8 and 16 letters (within) and with "
    "the first letter seen by all besides (first kept). Look-up: one token "
    "asks for a name among 6 that stand in random order, each with one of 8 "
    "digits; of 1000 new texts, the share right where the name stands 1 or 2 "
    "tokens away (hop 1), 3 or 4 (hop 2), 5 or 6 (hop 3). Every layer has "
    "a window of 3, itself counted. Arms: both sides, the asking token comes "
    "first and everybody may hear it; causal, it comes last; global, both "
    "sides and the asking token is global; full last, causal and the last "
    "layer has no window."
)
SEEDS = range(5)
RATES = {"language": (0.001, 0.003, 0.01), "look-up": (0.004, 0.006, 0.01)}
WINDOWS = (4, 8, 16)
SETTINGS: list[dict[str, Any]] = [
    {"task": "language", "window": window, "rate": rate}
    for window in (0, 4)
    for rate in RATES["language"]
]
ARMS = [("both sides", 3), ("causal", 2), ("global", 1), ("full last", 2)]
SETTINGS += [
    {"task": "look-up", "arm": arm, "layers": layers, "rate": rate}
    for arm, layers in ARMS
    for rate in RATES["look-up"]
]
SMALLEST = {"task": "look-up", "arm": "global", "layers": 1, "rate": 0.01}
# Another processor adds in another order, and hundreds of steps of Adam
# amplify the last digit; the shares that the test compares are near one.
TOLERANCE = 0.03

BUDGETS = {"language": (75, 150, 300), "look-up": (200, 300, 400)}
TEXTS, READ, FROM = 16, 100, 24
NAMES, DIGITS, D, HEADS, NEAR = 6, 8, 24, 2, 3
ASKED, TESTED = 32, 1000


def language_loss(model: nn.Module, text: Tensor, mask: Any) -> Tensor:
    """The loss of each letter after the first, (batch, n - 1)."""
    scores = model(text[:, :-1], mask=mask)
    return F.cross_entropy(scores.mT, text[:, 1:], reduction="none")


def within(window: int, *, first: bool = False) -> Tensor | None:
    """The mask of a window on the texts, or none for full attention."""
    if not window:
        return None
    where = (0,) if first else ()
    return longformer_mask(N - 1, N - 1, window, global_at=where)


def language_task(seed: int, window: int) -> tuple[nn.Module, Any, Any]:
    """The model, its losses, and how it is read."""
    model = transformer()
    texts = language.character_batches(TEXTS, n=N, seed=seed)
    [new] = islice(language.character_batches(READ, n=N, seed=9000 + seed), 1)

    def losses():
        for text in texts:
            yield language_loss(model, text, within(window)).mean()

    def read() -> dict[str, float]:
        def far(mask: Tensor | None) -> float:
            return language_loss(model, new, mask)[:, FROM:].mean().item()

        found = {"loss": far(within(window))}
        for w in () if window else WINDOWS:
            found[f"within {w}"] = far(within(w))
            found[f"within {w}, first kept"] = far(within(w, first=True))
        return found

    return model, losses(), read


class Block(nn.Module):
    """Attention in four heads and a network, with norms before them."""

    def __init__(self) -> None:
        super().__init__()
        self.W_qkv = nn.Linear(D, 3 * D, bias=False)
        self.W_o = nn.Linear(D, D, bias=False)
        self.inner, self.outer = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Mix the tokens that may look at each other, then work on each."""
        heads = self.W_qkv(self.norms[0](x)).unflatten(-1, (3, HEADS, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.W_o(mixed.transpose(1, 2).flatten(-2))
        return x + self.outer(self.inner(self.norms[1](x)).relu())


class LookUp(nn.Module):
    """Tokens and positions, a few blocks, a score for each digit."""

    def __init__(self, arm: str, layers: int) -> None:
        super().__init__()
        n = NAMES + 1
        self.last = arm in ("causal", "full last")
        self.embed = nn.Linear(2 * NAMES + DIGITS, D, bias=False)
        self.places = nn.Parameter(torch.randn(n, D) / D**0.5)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.read = nn.LayerNorm(D), nn.Linear(D, DIGITS)
        self.masks = [mask_of(arm, n)] * layers
        if arm == "full last":
            self.masks[-1] = causal_mask(n, n)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the digits, (batch, 8); the asking token comes first."""
        x = self.embed(x.flip(1) if self.last else x) + self.places
        for block, mask in zip(self.blocks, self.masks, strict=True):
            x = block(x, mask)
        return self.read(self.norm(x[:, -1 if self.last else 0]))


def mask_of(arm: str, n: int) -> Tensor:
    """Who may look at whom in a layer with a window."""
    near = window_mask(n, n, NEAR)
    if arm == "global":
        return longformer_mask(n, n, NEAR, global_at=(0,))
    return near if arm == "both sides" else near & causal_mask(n, n)


def asked(
    count: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Texts, (count, 7, 20), the digits asked for, and how far they are."""
    order = torch.rand(count, NAMES, generator=generator).argsort(-1)
    digits = torch.randint(DIGITS, (count, NAMES), generator=generator)
    where = torch.randint(NAMES, (count, 1), generator=generator)
    name = F.one_hot(order.gather(-1, where), NAMES)
    held = F.one_hot(order, NAMES), F.one_hot(digits, DIGITS)
    pairs = F.pad(torch.cat(held, dim=-1), (0, NAMES))
    question = F.pad(name, (NAMES + DIGITS, 0))
    x = torch.cat([question, pairs], dim=1).float()
    return x, digits.gather(-1, where)[:, 0], where[:, 0] + 1


def lookup_task(
    seed: int, arm: str, layers: int
) -> tuple[nn.Module, Any, Callable]:
    """The model, its losses, and how it is read."""
    model = LookUp(arm, layers)
    generator = torch.Generator().manual_seed(seed)
    new, right, far = asked(TESTED, torch.Generator().manual_seed(9000 + seed))

    def losses():
        while True:
            x, target, _ = asked(ASKED, generator)
            yield F.cross_entropy(model(x), target)

    def read() -> dict[str, float]:
        hit = (model(new).argmax(dim=-1) == right).float()
        hops = -(-far // (NEAR - 1))
        return {f"hop {h}": hit[hops == h].mean().item() for h in (1, 2, 3)}

    return model, losses(), read


def run(seed: int, *, task: str, rate: float, **arm: Any) -> dict[str, float]:
    """Train once, and read at each budget."""
    torch.manual_seed(seed)
    made = language_task if task == "language" else lookup_task
    model, losses, read = made(seed, **arm)
    return flat(trained(model, losses, rate, BUDGETS[task], read))
