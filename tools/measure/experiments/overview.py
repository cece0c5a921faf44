"""Every mechanism on the same inputs: what it costs, how far it is off.

*Count*: operations and bytes of every mechanism at several lengths. *Error*:
how far each is from attention on five kinds of inputs, of which two are what
a trained model computes.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn import MultiHeadAttention, attention, fused_attention
from selfattn.blocks import EncoderBlock
from selfattn.cost import LiveBytes, flops
from selfattn.data import language
from selfattn.dot_product import attention_weights
from selfattn.layers import LayerNorm
from selfattn.models import Decoder, Embedding
from selfattn.positions import LearnedPositions
from tools.measure.experiments import _mechanisms as every

ABOUT = (
    "One head of 64 features, every mechanism at several sizes, without a "
    "mask and causal. Count: operations in matrix products and the most "
    "bytes of tensors held at once, of one call in float32 on normal "
    "queries, keys and values. Error: the size of the difference to "
    "attention over the size of attention's output; on normal inputs of unit "
    "variance; on peaked ones, where each query is 1.5 times the sum of one "
    "key and of noise of its size, and the key is drawn from all up to its "
    "own (far) or from the last eight of them (near); and on the queries, "
    "keys and values of both layers of a model of letters (one head of 64, "
    "50 steps at a rate of .01 on texts of 2,048 letters), causal alone; "
    "with the share of the weight on keys less than 16 away, and e to the "
    "mean entropy of the rows (heard), both in causal order."
)
SEEDS = range(5)
D, LENGTHS, COUNTED = 64, (128, 512, 2048), (128, 512, 2048, 8192)
RANDOM, LAYERS = ("normal", "far", "near"), ("first layer", "last layer")
SETTINGS: list[dict[str, Any]] = [{"task": "count", "n": n} for n in COUNTED]
SETTINGS += [
    {"task": "error", "inputs": inputs, "n": n}
    for inputs, n in itertools.product(RANDOM + LAYERS, LENGTHS)
]
SMALLEST = {"task": "error", "inputs": "near", "n": 128}
TOLERANCE = 1e-3  # nothing is trained: sums in another order, and rounding

LONG, STEPS = 2048, 50
RATE = 0.01


def run(seed: int, *, task: str, n: int, inputs: str = "") -> dict[str, float]:
    """Count, or compare; see the module."""
    if task == "count":
        return counted(seed, n)
    with torch.no_grad():
        return errors(seed, inputs, n)


def counted(seed: int, n: int) -> dict[str, float]:
    """Operations and bytes of one call of each."""
    found = {}
    for name, _ in every.orders(seed, (False, True)):
        if name.startswith("attention") and n > LENGTHS[-1]:
            continue  # its tables would fill the machine
        drawn = seed if name.startswith("LSH") else SEEDS[0]
        done, held = cost_of(name, drawn, n)
        found[f"{name}, operations"] = done
        found[f"{name}, bytes"] = held
    return found


@functools.cache
def cost_of(name: str, seed: int, n: int) -> tuple[int, int]:
    """Of one mechanism; only Reformer's depends on what is drawn."""
    draw = torch.Generator().manual_seed(seed)
    call = partial(
        dict(every.orders(seed, (False, True)))[name],
        *every.normal(n, D, draw),
    )
    with LiveBytes() as memory, torch.no_grad():
        done = flops(call)
    return done, memory.peak


def errors(seed: int, inputs: str, n: int) -> dict[str, float]:
    """How far each is from attention, and how sharp the weights are."""
    draw = torch.Generator().manual_seed(seed)
    wanted = (False, True)
    if inputs in LAYERS:
        q, k, v = (x[:n] for x in of_the_model(seed)[inputs])
        wanted = (True,)
    elif inputs == "normal":
        q, k, v = every.normal(n, D, draw)
    else:
        q, k, v = every.peaked(n, D, draw, 8 if inputs == "near" else n)
    q, k, v = (x.double() for x in (q, k, v))
    weights = attention_weights(q, k, causal=True)
    found = {
        "within 16": every.weight_near(weights, 16),
        "heard": every.keys_heard(weights),
    }
    exact = {c: attention(q, k, v, causal=c) for c in wanted}
    for name, call in every.orders(seed, wanted):
        right = exact[name.endswith("causal")]
        found[name] = every.distance(call(q, k, v), right)
    return found


def letters(n: int, width: int, attend: Callable[..., Tensor]) -> Decoder:
    """A decoder of two blocks of one head, with any mechanism."""
    places = LearnedPositions(n, width)
    embed = Embedding(len(language.CHARACTERS), width, positions=places)
    one = partial(MultiHeadAttention, attend=attend)
    block = partial(EncoderBlock, width, 1, 4 * width, multihead=one)
    blocks = [block(pre=True) for _ in range(2)]
    return Decoder(embed, blocks, norm=LayerNorm(width))


def losses_of(model: Decoder, texts: Iterator[Tensor]) -> Iterator[Tensor]:
    """On one batch of texts after the other."""
    for text in texts:
        yield loss_on(model, text)


def loss_on(model: Decoder, text: Tensor) -> Tensor:
    """The loss, in nats a letter."""
    scores = model(text[:, :-1]).flatten(0, 1)
    return F.cross_entropy(scores, text[:, 1:].flatten())


def train(model: Decoder, losses: Iterator[Tensor], rate: float) -> Iterator:
    """Train, and stop after every step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step, loss in enumerate(losses, 1):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield step


@functools.lru_cache(maxsize=8)
def of_the_model(seed: int) -> dict[str, list[Tensor]]:
    """Queries, keys and values of both layers of a trained model."""
    torch.manual_seed(seed)
    model = letters(LONG, D, fused_attention)
    texts = language.character_batches(1, n=LONG + 1, seed=seed)
    steps = train(model, losses_of(model, texts), RATE)
    with torch.enable_grad():
        for _ in itertools.islice(steps, STEPS):
            pass
    new = next(language.character_batches(1, n=LONG, seed=9000 + seed))
    found = {}
    with torch.no_grad():
        x = model.embed(new)
        for name, block in zip(LAYERS, model.blocks, strict=True):
            heads = block.attention.heads(block.add_norm_1.norm(x))
            found[name] = [one[0, 0] for one in heads]
            x = block(x, causal=True)
    return found
