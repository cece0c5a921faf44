"""What training tells of a wrong attention.

Six queries, and six keys in another order at every step; each key carries
itself as its value, and each query is to fetch the key that is equal to it.
Two maps are trained, of queries and of keys, with an attention function of
the doctor's bank in the place of the right one. The functions are those that
are wrong without a mask and that run on these sizes.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from selfattn.doctor.kinds.attention.kind import REFERENCE
from selfattn.dot_product import attention

ABOUT = (
    "Attention functions, one right and fifteen wrong, trained for 300 steps "
    "at each of three rates and three widths of queries and keys, to fetch "
    "the one of six keys that is equal to the query: the loss as a share of "
    "that at the start, at the end (share) and on the way (share at 75, at "
    "150), each the mean of ten steps; then, on 64 new orders "
    "of the keys, how many queries of six asked at once get the right answer "
    "by their largest number (together), how many of those asked one at a "
    "time (alone; none, if that raises), and the loss of the same maps "
    "around the right function, as a share of that at the start (elsewhere)."
)
SEEDS = range(5)
RIGHT = "none: this one is right"
MISTAKES = (
    "no scale",
    "divided by d",
    "scaled by the width of v",
    "scaled by the number of keys",
    "multiplied by the root",
    "no softmax",
    "sigmoid instead of softmax",
    "cosine instead of product",
    "the output is scaled",
    "softmax over queries",
    "softmax over axis 1",
    "weights on their side",
    "weights returned",
    "keys of the first sequence",
    "dropout that never ends",
)
RATES, WIDTHS = (0.005, 0.02, 0.08), (4, 16, 64)
SETTINGS = [
    {"mistake": name, "rate": rate, "width": width}
    for name in (RIGHT, *MISTAKES)
    for rate in RATES
    for width in WIDTHS
]
SMALLEST = {"mistake": RIGHT, "rate": 0.02, "width": 16}
# Every answer is right in the end, and what is left of the loss is less than
# a thousandth: sums in another order change neither by as much as this.
TOLERANCE = 0.002

N, BATCH, STEPS, ASKED, MEAN_OF = 6, 64, 300, (75, 150), 10
BANK = {one.name: one.answer for one in REFERENCE.mistakes}
ONE_HOT = torch.eye(N)
QUERIES = ONE_HOT.expand(BATCH, N, N)


def shuffled() -> Tensor:
    """Six keys in an order of its own for each sequence of a batch."""
    return ONE_HOT[torch.rand(BATCH, N).argsort(dim=-1)]


def right(output: Tensor, q: Tensor) -> float:
    """How many answers have their largest number in the right place."""
    return (output.argmax(-1) == q.argmax(-1)).float().mean().item()


def alone(attend, ask: nn.Module, k: Tensor, values: Tensor) -> float:
    """How many are right if each query is asked by itself."""
    try:
        found = [
            right(attend(ask(q[:, None]), k, values.clone()), q[:, None])
            for q in QUERIES.unbind(dim=1)
        ]
    except RuntimeError:
        return 0.0
    return sum(found) / N


def run(
    seed: int, *, mistake: str, rate: float, width: int
) -> dict[str, float]:
    """Train around a function, then ask in three other ways."""
    attend = BANK.get(mistake, attention)
    torch.manual_seed(seed)
    ask, offer = nn.Linear(N, width), nn.Linear(N, width)
    losses = trained(attend, ask, offer, rate)
    with torch.no_grad():
        keys = shuffled()
        q, k = ask(QUERIES), offer(keys)
        moved = mse_loss(attention(q, k, keys), QUERIES).item()
        found = {
            "together": right(attend(q, k, keys.clone()), QUERIES),
            "alone": alone(attend, ask, k, keys),
            "elsewhere": moved / losses[0],
        }
    shares = {f"share at {n}": share(losses, n) for n in ASKED}
    return {"share": share(losses, STEPS)} | shares | found


def trained(attend, ask: nn.Module, offer: nn.Module, rate: float) -> list:
    """Train two maps around a function; the loss at each step."""
    trainer = torch.optim.Adam(
        [*ask.parameters(), *offer.parameters()], lr=rate
    )
    losses = []
    for _ in range(STEPS):
        keys = shuffled()
        output = attend(ask(QUERIES), offer(keys), keys.clone())
        loss = mse_loss(output, QUERIES)
        losses.append(loss.item())
        trainer.zero_grad()
        loss.backward()
        trainer.step()
    return losses


def share(losses: list[float], step: int) -> float:
    """The loss before a step, the mean of some, as a share of the first."""
    return sum(losses[step - MEAN_OF : step]) / MEAN_OF / losses[0]
