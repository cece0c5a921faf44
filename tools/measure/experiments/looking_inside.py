"""What a head carries: its output taken from another text.

*Two look-ups* (`selfattn.data.two_lookups`): one layer of two heads is
trained, and what one head brings back is replaced by what it brings back from
a text with the same names and other digits. The small model of the page is
trained here as well:

    python -m tools.measure.experiments.looking_inside

trains it, and writes its weights where the lab reads them.
"""

import itertools
from typing import Any

import torch
import torch.nn.functional as F

from selfattn.data.tales import tale_batches
from selfattn.data.two_lookups import two_lookup_batches
from selfattn.labs.looking_inside_model import STORED, packed, small_decoder
from selfattn.looking_inside import change_heads, record_heads
from selfattn.models import Decoder
from tools.measure.experiments.multihead import Reader

ABOUT = (
    "Two look-ups: one layer of two heads, trained for 500 steps; one head's "
    "output is taken from a text with the same names and other digits: share "
    "of new sentences with both digits right before (both), of the patched "
    "head's own digits that follow, of the others that stay, and whether the "
    "two heads own different digits (apart)."
)
SEEDS = range(5)
SETTINGS: list[dict[str, Any]] = [
    {"task": "two look-ups", "width": 32, "rate": rate}
    for rate in (0.005, 0.01, 0.02)
]
SMALLEST = {"task": "two look-ups", "width": 32, "rate": 0.01}
# Another processor adds in another order, and hundreds of steps of Adam
# amplify the last digit; the shares that the test compares are near one.
TOLERANCE = 0.03

STEPS = 500
PAGE_STEPS, PAGE_BATCH, PAGE_RATE = 1000, 48, 0.006


def train_page() -> Decoder:
    """The model of the page, after 1000 batches of tales.

    Of an echo nothing can be foretold before it begins anew, so that its
    first round is left out of the loss.
    """
    torch.manual_seed(0)
    model = small_decoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=PAGE_RATE)
    batches = tale_batches(PAGE_BATCH, seed=0)
    for tale in itertools.islice(batches, PAGE_STEPS):
        first = int(tale.asked[0]) if len(tale.asked) > 1 else 0
        scores = model(tale.tokens[:, :-1])[:, first:]
        loss = F.cross_entropy(
            scores.flatten(0, 1), tale.tokens[:, first + 1 :].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def run(seed: int, *, task: str, width: int, rate: float) -> dict[str, float]:
    """Train two heads for two look-ups, and patch one of them."""
    torch.manual_seed(seed)
    model = Reader(2, width=width)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    batches = two_lookup_batches(64, seed=seed)
    for x, target, _ in itertools.islice(batches, STEPS):
        loss = F.cross_entropy(model(x).flatten(0, 2), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return patch_lookups(model.eval(), seed)


def patch_lookups(model: Reader, seed: int) -> dict[str, float]:
    """One head's output from a text of the same names with other digits."""
    x, target, _ = next(two_lookup_batches(1000, seed=10_000 + seed))
    donor = x.clone()
    shift = torch.arange(1, 11) % 10  # each digit becomes the next one
    donor[..., 6:] = x[..., 6:][..., shift.argsort()]
    with record_heads(model) as brought:
        others = model(donor).argmax(dim=-1)
    own = model(x).argmax(dim=-1)
    follows, stays = [], []
    for name in ("1.1", "1.2"):
        with change_heads(model, {name: brought[name]}):
            now = model(x).argmax(dim=-1)
        follows.append((now == others).float().mean(dim=(0, 1)))
        stays.append((now == own).float().mean(dim=(0, 1)))
    moved, kept = torch.stack(follows), torch.stack(stays)
    mine = moved.argmax(dim=1)  # the digit that a head owns
    heads = torch.arange(2)
    return {
        "both": (own == target).all(dim=-1).float().mean().item(),
        "follows": moved[heads, mine].min().item(),
        "stays": kept[heads, 1 - mine].min().item(),
        "apart": float(mine[0] != mine[1]),
    }


def main() -> None:
    """Train the page's model, and write down its weights."""
    torch.set_num_threads(1)
    STORED.write_text(packed(train_page()), encoding="utf-8")
    print(STORED.name)


if __name__ == "__main__":
    main()
