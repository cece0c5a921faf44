"""What an estimate of softmax does to a trained model.

*Swap*: a small language model is trained with softmax attention, then run
with Performer's estimate in its place, and trained on; beside it the same
model is trained with the estimate from the start, with directions that stay
or that are drawn anew at every step. *Recall*: a layer is told pairs of key
and value, and asked for the value of each key, with softmax and with the
estimate; where it was trained with softmax, its queries and keys are also
made longer and shorter in ways that leave softmax as it is.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn import attention
from selfattn.data import language
from selfattn.efficient.performer import performer_attention
from tools.measure.experiments._budgets import trained
from tools.measure.experiments._recall import Recaller, recall_batches
from tools.measure.experiments.linear import (
    BATCH,
    BUDGETS,
    REPAIRS,
    TEXTS,
    N,
    letters,
    losses_of,
    next_letter,
)

ABOUT = (
    "Swap: a language model of letters, two blocks of two heads of 16, "
    "trained for 300 steps; loss in nats a letter on new texts with softmax "
    "attention after the steps stated (softmax, 75 and so on), of the same "
    "weights with Performer in its place, by features (swapped 64, 75 and so "
    "on; means over four draws of the directions), after training on with "
    "64 features (repaired), and with Performer from the start: with "
    "directions that stay (fixed 64) or are drawn anew at every "
    "step (redrawn 64), read with its own directions or, where that is said, "
    "with others (means over four draws). Recall: one layer of 8 features a "
    "key, told pairs of one of 64 keys and one of 16 values, trained for 300 "
    "steps to report the value of each key; share of right values on 200 new "
    "lists after the steps stated (right, 75 and so on), with softmax or "
    "with Performer of m features; of the former with m features in its "
    "place (swapped 64), and with 64 after its queries and keys were made "
    "as short as a scale and a shift can (shorter), or all keys were "
    "shifted by so much along one direction (longer 2), which leave softmax "
    "as it is (moved: by how much its share of right values changed most); "
    "of the latter with other directions (other), and with "
    "softmax in its place (exact). Means over four draws. Length: the "
    "median of the squared length of query plus key, over root d, of a "
    "query and its own key."
)
SEEDS = range(5)
RATE, RATES = 0.01, (0.003, 0.03)
PAIRS, FEATURES = (8, 16, 32), (8, 32, 128)
SETTINGS: list[dict[str, Any]] = [
    {"task": "recall", "m": m, "pairs": pairs, "rate": RATE}
    for m, pairs in itertools.product((0, *FEATURES), PAIRS)
]
SETTINGS += [
    {"task": "recall", "m": m, "pairs": pairs, "rate": rate}
    for rate, m, pairs in itertools.product(RATES, (0, 32), (16,))
]
SETTINGS += [{"task": "swap", "rate": RATE}]
SMALLEST = {"task": "recall", "m": 0, "pairs": 8, "rate": RATE}
# Another processor adds in another order, and hundreds of steps of Adam
# amplify the last digit; an estimate, far off, amplifies it once more.
TOLERANCE = 0.05

KEY = 8  # features of a query and a key in recall
SWAPS, LONGER = (16, 64, 256, 1024), (2, 4, 8)
OTHERS = range(101, 105)  # seeds of directions that no training saw
M, OWN = 64, 1


def run(
    seed: int, *, task: str, rate: float, m: int = 0, pairs: int = 0
) -> dict[str, float]:
    """Train once, or a model and what is put into it; read at each budget."""
    torch.manual_seed(seed)
    if task == "swap":
        return run_swap(seed, rate)
    return run_recall(seed, rate, m, pairs)


def estimate(m: int, seed: int) -> Callable[..., Tensor]:
    """Attention by m features, of directions that a seed draws."""
    return partial(performer_attention, n_features=m, seed=seed)


def mean(numbers: Iterator[float]) -> float:
    """Of some numbers."""
    listed = [*numbers]
    return sum(listed) / len(listed)


class Reader(Recaller):
    """Recall by any attention; queries and keys may be changed before it."""

    def __init__(self, attend: Callable[..., Tensor]) -> None:
        super().__init__("softmax", KEY)
        self.attend = attend

    def tensors(
        self, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of attention."""
        names = self.keys(keys)
        told = names + self.values(values)
        return self.W_q(names + self.asks), self.W_k(told), self.W_v(told)

    def forward(self, keys: Tensor, values: Tensor) -> Tensor:
        """Scores of every value for every key, (batch, pairs, VALUES)."""
        return self.read(self.attend(*self.tensors(keys, values)))


def shorter(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """As short as one scale and one shift can; softmax stays as it is."""
    middle_q, middle_k = q.mean((0, 1)), k.mean((0, 1))
    ratio = ((k - middle_k).norm() / (q - middle_q).norm()).sqrt()
    return q * ratio, (k - middle_k) / ratio - middle_q * ratio


def longer(q: Tensor, k: Tensor, by: float) -> tuple[Tensor, Tensor]:
    """All keys shifted along one direction; softmax stays as it is."""
    generator = torch.Generator().manual_seed(7)
    direction = F.normalize(torch.randn(KEY, generator=generator), dim=0)
    return q, k + by * direction


def run_recall(seed: int, rate: float, m: int, pairs: int) -> dict[str, float]:
    """Train with softmax, where m is 0, or with m features."""
    model = Reader(estimate(m, OWN) if m else attention)
    batches = recall_batches(BATCH, pairs, seed)
    new = next(recall_batches(200, pairs, 10_000 + seed))
    found, budgets = {}, iter(BUDGETS)

    def losses() -> Iterator[Tensor]:
        for keys, values in batches:
            scores = model(keys, values)
            yield F.cross_entropy(scores.flatten(0, 1), values.flatten())

    def read() -> float:
        others = swapped(model, new) if m == 0 else redrawn(model, new, m)
        steps = next(budgets)
        found.update({f"{name}, {steps}": x for name, x in others.items()})
        return right(model, new, *model.tensors(*new), model.attend)

    after = trained(model, losses(), rate, BUDGETS, read)
    return {f"right, {steps}": x for steps, x in after.items()} | found


def right(model: Reader, new, q, k, v, attend) -> float:
    """The share of right values, with these in the place of its own."""
    found = model.read(attend(q, k, v)).argmax(-1)
    return (found == new[1]).float().mean().item()


def swapped(model: Reader, new) -> dict[str, float]:
    """A model of softmax, with the estimate in its place."""
    q, k, v = model.tensors(*new)
    found = {"length": length(q, k)}

    def many(q: Tensor, k: Tensor, m: int) -> float:
        return mean(
            right(model, new, q, k, v, estimate(m, seed)) for seed in OTHERS
        )

    for m in SWAPS[:-1]:
        found[f"swapped {m}"] = many(q, k, m)
    exact, moved = right(model, new, q, k, v, attention), []
    changed = {"shorter": shorter(q, k)}
    changed |= {f"longer {by}": longer(q, k, by) for by in LONGER}
    for name, (one, other) in changed.items():
        found[name] = many(one, other, M)
        found[f"{name}, length"] = length(one, other)
        moved.append(right(model, new, one, other, v, attention) - exact)
    return found | {"moved": max(moved, key=abs)}


def redrawn(model: Reader, new, m: int) -> dict[str, float]:
    """A model of one draw, with others, and with softmax in its place."""
    tensors = model.tensors(*new)
    other = (right(model, new, *tensors, estimate(m, s)) for s in OTHERS)
    return {
        "other": mean(other),
        "exact": right(model, new, *tensors, attention),
        "length": length(*tensors[:2]),
    }


def length(q: Tensor, k: Tensor) -> float:
    """What the spread of the estimate grows with, of each one's own key."""
    squares = (q + k).square().sum(dim=-1) / KEY**0.5
    return squares.median().item()


class Loss:
    """The loss of a model of letters, with any attention put into it."""

    def __init__(self, new: Tensor) -> None:
        self.new = new

    @torch.no_grad()
    def of(self, state: dict[str, Tensor], attend) -> float:
        """With these weights."""
        other = letters(attend)
        other.load_state_dict(state)
        return next_letter(other, self.new).item()

    def others(self, state: dict[str, Tensor], m: int) -> float:
        """With these weights and m features, over draws that are new."""
        return mean(self.of(state, estimate(m, seed)) for seed in OTHERS)


def run_swap(seed: int, rate: float) -> dict[str, float]:
    """Train with softmax, swap, train on; and train with the estimate."""
    texts = language.character_batches(TEXTS, n=N, seed=seed)
    loss = Loss(next(language.character_batches(64, n=N, seed=10_000 + seed)))
    model, found, budgets = letters(attention), {}, iter(BUDGETS)
    start = {name: x.clone() for name, x in model.state_dict().items()}

    def read() -> float:
        steps = next(budgets)
        for m in SWAPS:
            lost = loss.others(model.state_dict(), m)
            found[f"swapped {m}, {steps}"] = lost
        return loss.of(model.state_dict(), attention)

    exact = trained(model, losses_of(model, texts), rate, BUDGETS, read)
    found |= {f"softmax, {steps}": x for steps, x in exact.items()}
    other = letters(estimate(M, OWN))
    other.load_state_dict(model.state_dict())
    repaired = trained(
        other,
        losses_of(other, texts),
        rate,
        REPAIRS,
        lambda: loss.of(other.state_dict(), estimate(M, OWN)),
    )
    found |= {f"repaired, {steps}": x for steps, x in repaired.items()}
    for name, m in (("fixed", M), ("redrawn", M)):
        found |= from_the_start(start, loss, seed, rate, name, m)
    return found


class Redrawn:
    """Attention by m features, of directions drawn anew at every step."""

    def __init__(self, m: int) -> None:
        self.m, self.step = m, 1000

    def __call__(self, q, k, v, **options: Any) -> Tensor:
        """With the directions of this step."""
        return estimate(self.m, self.step)(q, k, v, **options)


def from_the_start(
    start: dict[str, Tensor],
    loss: Loss,
    seed: int,
    rate: float,
    name: str,
    m: int,
) -> dict[str, float]:
    """Trained with the estimate; read with its own directions and others."""
    attend = Redrawn(m) if name == "redrawn" else estimate(m, OWN)
    model, found = letters(attend), {}
    model.load_state_dict(start)
    texts = language.character_batches(TEXTS, n=N, seed=seed)
    budgets = iter(BUDGETS)

    def losses() -> Iterator[Tensor]:
        for one in losses_of(model, texts):
            if isinstance(attend, Redrawn):
                attend.step += 1
            yield one

    def read() -> float:
        state, steps = model.state_dict(), next(budgets)
        found[f"{name} {m} others, {steps}"] = loss.others(state, m)
        found[f"{name} {m} exact, {steps}"] = loss.of(state, attention)
        return loss.of(state, estimate(m, OWN))

    own = trained(model, losses(), rate, BUDGETS, read)
    return found | {f"{name} {m}, {steps}": x for steps, x in own.items()}
