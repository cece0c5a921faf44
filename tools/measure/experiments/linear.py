"""What a memory of fixed size forgets, and what another kernel does.

*Recall*: a layer is told pairs of key and value, and asked for the value of
each key: softmax attention, linear attention, and two memories without a
division, one that only adds and one that follows the delta rule, at several
numbers of features and of pairs. *Swap*: a small language model is trained
with softmax attention, then run with linear attention in its place, with
other kernels between the two, and trained on; beside it the same model is
trained with linear attention from the start.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn import MultiHeadAttention, attention
from selfattn.blocks import EncoderBlock
from selfattn.data import language
from selfattn.efficient.linear import elu_plus_one, linear_attention
from selfattn.layers import LayerNorm
from selfattn.models import Decoder, Embedding
from selfattn.positions import LearnedPositions
from tools.measure.experiments._budgets import trained
from tools.measure.experiments._recall import Recaller, recall_batches

ABOUT = (
    "Recall: one layer, told pairs of one of 64 keys and one of 16 values, "
    "trained for 300 steps to report the value of each key; share of right "
    "values on 200 new lists after the steps stated (right, 75 and so on), "
    "with softmax attention, linear attention, a memory that adds (sum) and "
    "one by the delta rule, with d features a key. Swap: a language model of "
    "letters, two blocks of two heads of 16, trained for 300 steps; loss in "
    "nats a letter on new texts with softmax attention after the steps "
    "stated (softmax, 75 and so on), of the same weights with linear "
    "attention in its place (swapped), of that with queries and keys times 3 "
    "(swapped, sharper), with the exponential's series up to an order "
    "(swapped, order 2 and so on), after training on with linear attention "
    "for the steps stated (repaired), and with linear attention from the "
    "start (linear); and how far the outputs of the first block's heads are "
    "apart, over their size, before and after training (apart)."
)
SEEDS = range(5)
ARMS = ("softmax", "linear", "sum", "delta")
FEATURES, PAIRS = (4, 8, 16), (4, 8, 16, 32)
RATE, RATES = 0.01, (0.003, 0.03)
SETTINGS: list[dict[str, Any]] = [
    {"task": "recall", "arm": arm, "d": d, "pairs": pairs, "rate": RATE}
    for arm, d, pairs in itertools.product(ARMS, FEATURES, PAIRS)
]
SETTINGS += [
    {"task": "recall", "arm": arm, "d": 8, "pairs": pairs, "rate": rate}
    for rate, arm, pairs in itertools.product(RATES, ARMS[:2], PAIRS)
]
SETTINGS += [{"task": "swap", "rate": RATE}]
SMALLEST = {
    "task": "recall",
    "arm": "softmax",
    "d": 16,
    "pairs": 4,
    "rate": RATE,
}
# Another processor adds in another order, and hundreds of steps of Adam
# amplify the last digit; the shares that the test compares are all near one.
TOLERANCE = 0.03

BATCH, BUDGETS = 32, (75, 150, 300)
N, D, HEADS, LAYERS, TEXTS = 32, 32, 2, 2, 8
REPAIRS, ORDERS = (10, 30, 100), (2, 4, 8)


def run(
    seed: int,
    *,
    task: str,
    rate: float,
    arm: str = "",
    d: int = 0,
    pairs: int = 0,
) -> dict[str, float]:
    """Train once, or a model and what is put into it; read at each budget."""
    torch.manual_seed(seed)
    if task == "swap":
        return run_swap(seed, rate)
    model = Recaller(arm, d)
    batches = recall_batches(BATCH, pairs, seed)
    new = next(recall_batches(200, pairs, 10_000 + seed))

    def losses() -> Iterator[Tensor]:
        for keys, values in batches:
            scores = model(keys, values)
            yield F.cross_entropy(scores.flatten(0, 1), values.flatten())

    def right() -> float:
        return (model(*new).argmax(-1) == new[1]).float().mean().item()

    found = trained(model, losses(), rate, BUDGETS, right)
    return {f"right, {steps}": share for steps, share in found.items()}


def series(q, k, v, *, mask=None, bias=None, causal=False, order):
    """Attention with the exponential's series, up to an order, for exp."""
    if mask is not None or bias is not None or not causal:
        raise ValueError("series takes a causal mask and nothing else")
    scores = q @ k.mT / q.shape[-1] ** 0.5
    power = torch.ones_like(scores)
    weights = torch.ones_like(scores)
    for i in range(1, order + 1):
        power = power * scores / i
        weights = weights + power
    weights = weights.tril()
    return weights / weights.sum(-1, keepdim=True) @ v


def sharper(x: Tensor) -> Tensor:
    """The features of three times as much."""
    return elu_plus_one(3 * x)


OTHERS = {
    "swapped": linear_attention,
    "swapped, sharper": partial(linear_attention, feature_map=sharper),
    **{
        f"swapped, order {order}": partial(series, order=order)
        for order in ORDERS
    },
}


def letters(attend: Callable[..., Tensor]) -> Decoder:
    """The language model of the chapter on models, with another mechanism."""
    fast = partial(MultiHeadAttention, attend=attend)
    embed = Embedding(
        len(language.CHARACTERS), D, positions=LearnedPositions(N, D)
    )
    block = partial(EncoderBlock, D, HEADS, 4 * D, pre=True, multihead=fast)
    blocks = [block() for _ in range(LAYERS)]
    return Decoder(embed, blocks, norm=LayerNorm(D))


def next_letter(model: Decoder, text: Tensor) -> Tensor:
    """The loss, in nats a letter."""
    scores = model(text[:, :-1]).flatten(0, 1)
    return F.cross_entropy(scores, text[:, 1:].flatten())


def losses_of(model: Decoder, texts: Iterator[Tensor]) -> Iterator[Tensor]:
    """On one batch of texts after the other."""
    for text in texts:
        yield next_letter(model, text)


def run_swap(seed: int, rate: float) -> dict[str, float]:
    """Train with softmax, swap, train on; and train with the other at once."""
    texts = language.character_batches(TEXTS, n=N, seed=seed)
    new = next(language.character_batches(64, n=N, seed=10_000 + seed))
    model, found = letters(attention), {}
    start = {name: x.clone() for name, x in model.state_dict().items()}
    found["apart, 0"] = apart(model, new)
    others = {name: letters(attend) for name, attend in OTHERS.items()}
    budgets = iter(BUDGETS)

    def read() -> float:
        steps = next(budgets)
        for name, other in others.items():
            if name == "swapped" or steps == BUDGETS[-1]:
                other.load_state_dict(model.state_dict())
                found[f"{name}, {steps}"] = next_letter(other, new).item()
        return next_letter(model, new).item()

    with_softmax = trained(model, losses_of(model, texts), rate, BUDGETS, read)
    found |= {f"softmax, {n}": loss for n, loss in with_softmax.items()}
    found[f"apart, {BUDGETS[-1]}"] = apart(model, new)
    return found | with_linear(
        others["swapped"], start, texts, new, rate, seed
    )


def with_linear(
    model: Decoder,
    start: dict[str, Tensor],
    texts: Iterator[Tensor],
    new: Tensor,
    rate: float,
    seed: int,
) -> dict[str, float]:
    """Losses when it is trained on as it is, and then from the start."""
    found = {}
    for name, budget in (("repaired", REPAIRS), ("linear", BUDGETS)):
        if name == "linear":
            model.load_state_dict(start)
            texts = language.character_batches(TEXTS, n=N, seed=seed)
        losses = trained(
            model,
            losses_of(model, texts),
            rate,
            budget,
            lambda: next_letter(model, new).item(),
        )
        found |= {f"{name}, {n}": loss for n, loss in losses.items()}
    return found


@torch.no_grad()
def apart(model: Decoder, text: Tensor) -> float:
    """How far the first block's heads are from linear attention's."""
    block = model.blocks[0]
    x = block.add_norm_1.norm(model.embed(text[:, :-1]))
    heads = block.attention.heads(x)
    a, b = (f(*heads, causal=True) for f in (attention, linear_attention))
    return ((a - b).norm() / a.norm()).item()
