"""Small models on small tasks: what each learns, at three budgets.

A language of letters for a Transformer and an LSTM of as many parameters,
with clean texts or with slips in them; handwritten digits for a vision
transformer, with and without positions, and with positions but the patches of
each picture scattered; praise and blame for an encoder that is told the order
of the words, for one that is not, for an LSTM, and for a network on the
words' average.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selfattn.data import digits, language, sentiment
from selfattn.layers import LayerNorm
from selfattn.models import (
    Decoder,
    PatchEmbedding,
    VisionTransformer,
    complete,
    greedy,
    sample,
)
from tools.measure.experiments._small_models import (
    N_LETTERS,
    Classifier,
    N,
    Recurrent,
    blocks,
    transformer,
)

ABOUT = (
    "Small models trained with Adam and read after three budgets of steps. "
    "Language: letters of generated sentences, 16 texts of 48 a step; loss in "
    "nats a letter on 64 new texts (loss); what the eight letters after a "
    "slip, one letter replaced, cost more than without it (slip). Of the "
    "Transformer at the rate .003, at the end: of 128 sentences that it "
    "writes, the share that the grammar knows (written) and the share of "
    "different ones among them (different), greedily, at temperatures .5, 1 "
    "and 1.5, and at 1 and 1.5 among the 3 likeliest or those that make up "
    ".9. Digits: share of 360 "
    "unseen pictures named right, 64 pictures a step; scattered: each "
    "picture's patches in an order drawn for it, in training and after. "
    "Sentiment: share of 1,000 new texts, 32 texts a step."
)
SEEDS = range(5)
RATES = (0.001, 0.003, 0.01)
WRITER = 0.003  # the rate of those models that write
SETTINGS = [
    {"task": task, "arm": arm, "rate": rate}
    for task, arms, rates in (
        ("sentiment", ("encoder", "unordered", "LSTM", "average"), RATES),
        ("digits", ("patches", "unordered"), RATES[:2]),
        ("language", ("Transformer", "LSTM"), RATES[:2]),
    )
    for arm in arms
    for rate in rates
]
SETTINGS += [
    {"task": "language", "arm": "slips", "rate": 0.003},
    {"task": "language", "arm": "bigram"},
]
SETTINGS += [
    {"task": "digits", "arm": "scattered", "rate": rate} for rate in RATES[:2]
]
SMALLEST = {"task": "sentiment", "arm": "average", "rate": 0.001}
# Another processor adds in another order, and Adam amplifies the last digit.
TOLERANCE = 0.03

BUDGETS = {
    "language": (100, 200, 400),
    "digits": (100, 200, 300),
    "sentiment": (50, 100, 200),
}
BATCH = 16
SLIP, AFTER, SHARE = 20, 8, 0.03  # where, how many letters on, in training
WAYS = {
    "greedy": greedy,
    "0.5": partial(sample, temperature=0.5),
    "1": sample,
    "1.5": partial(sample, temperature=1.5),
    "1, top 3": partial(sample, top_k=3),
    "1.5, top 3": partial(sample, temperature=1.5, top_k=3),
    "1, top .9": partial(sample, top_p=0.9),
    "1.5, top .9": partial(sample, temperature=1.5, top_p=0.9),
}


def with_slips(text: Tensor, share: float) -> Tensor:
    """The text with some letters replaced by others drawn at random."""
    other = torch.randint_like(text, N_LETTERS)
    return torch.where(torch.rand(text.shape) < share, other, text)


def next_letter(model: nn.Module, read: Tensor, text: Tensor) -> Tensor:
    """Loss of each next letter of a text, of which so much was read."""
    logits = model(read[:, :-1]).mT
    return F.cross_entropy(logits, text[:, 1:], reduction="none")


@torch.no_grad()
def read_language(model: nn.Module, seed: int) -> dict[str, float]:
    """Loss on new texts, and what a slip adds to the letters after it."""
    new = language.character_batches(64, n=N, seed=10_000 + seed)
    text = next(new)
    slipped = text.clone()
    slipped[:, SLIP] = (slipped[:, SLIP] + 1 + seed) % N_LETTERS
    clean = next_letter(model, text, text)
    after = next_letter(model, slipped, text) - clean
    band = after[:, SLIP : SLIP + AFTER]
    return {"loss": clean.mean().item(), "slip": band.mean().item()}


@torch.no_grad()
def written(model: Decoder, seed: int) -> dict[str, float]:
    """Share of sentences of the language, among those that it writes."""
    prompt = language.encode(". ").repeat(128, 1)
    found = {}
    for name, choose in WAYS.items():
        torch.manual_seed(20_000 + seed)
        made = complete(model.step, prompt, N - 4, choose=choose)
        texts = [language.decode(row)[2:] for row in made]
        told = [text.partition(". ")[0] for text in texts]
        known = sum(map(is_sentence, told)) / len(told)
        found[f"written, {name}"] = known
        found[f"different, {name}"] = len(set(told)) / len(told)
    return found


def is_sentence(text: str) -> bool:
    """Whether the grammar can say this; a text without its full stop."""
    words = text.split(" ")
    for slot in language.SLOTS:
        if words and words[0] in slot:
            words = words[1:]
        elif "" not in slot:
            return False
    return not words


def bigram(seed: int) -> dict[str, float]:
    """What a table of pairs of letters costs, counted on the same texts."""
    texts = language.character_batches(BATCH, n=N, seed=seed)
    counts = torch.ones(N_LETTERS, N_LETTERS)
    new = next(language.character_batches(64, n=N, seed=10_000 + seed))
    found, done = {}, 0
    for budget in BUDGETS["language"]:
        for text in islice(texts, budget - done):
            pairs = text[:, :-1] * N_LETTERS + text[:, 1:]
            counts += torch.bincount(
                pairs.flatten(), minlength=N_LETTERS**2
            ).view_as(counts)
        done = budget
        loss = -(counts / counts.sum(-1, keepdim=True)).log()
        found[f"loss, {budget}"] = loss[new[:, :-1], new[:, 1:]].mean().item()
    return found


def language_task(
    arm: str, seed: int, rate: float
) -> tuple[nn.Module, Iterator[Tensor], Callable]:
    """The model, its losses, and how it is read."""
    model = Recurrent() if arm == "LSTM" else transformer()
    texts = language.character_batches(BATCH, n=N, seed=seed)
    share = SHARE if arm == "slips" else 0.0

    def losses() -> Iterator[Tensor]:
        for text in texts:
            yield next_letter(model, with_slips(text, share), text).mean()

    def read(budget: int) -> dict[str, float]:
        found = read_language(model, seed)
        last = budget == BUDGETS["language"][-1]
        writes = last and arm == "Transformer" and rate == WRITER
        return found | (written(model, seed) if writes else {})

    return model, losses(), read


def sentiment_task(
    arm: str, seed: int, rate: float
) -> tuple[nn.Module, Iterator[Tensor], Callable]:
    """The model, its losses, and how it is read."""
    model = Classifier(arm)
    texts = sentiment.sentiment_batches(32, seed=seed)
    new = sentiment.sentiment_batches(1000, seed=10_000 + seed)
    tokens, lengths, labels = next(new)

    def losses() -> Iterator[Tensor]:
        for told, many, label in texts:
            yield F.cross_entropy(model(told, many), label)

    def read(budget: int) -> dict[str, float]:
        right = model(tokens, lengths).argmax(dim=-1) == labels
        return {"right": right.float().mean().item()}

    return model, losses(), read


def scattered(images: Tensor) -> Tensor:
    """The patches of each picture, 4 by 2, in an order drawn for it."""
    patches = images.unfold(1, 4, 4).unfold(2, 2, 2).flatten(1, 2)
    order = torch.rand(patches.shape[:2]).argsort(dim=1)
    moved = patches[torch.arange(len(images))[:, None], order]
    return moved.unflatten(1, (2, 4)).transpose(2, 3).flatten(3).flatten(1, 2)


def digits_task(
    arm: str, seed: int, rate: float
) -> tuple[nn.Module, Iterator[Tensor], Callable]:
    """The model, its losses, and how it is read."""
    train, test = digits.handwritten_digits(seed=seed)
    embed = PatchEmbedding((8, 8), (4, 2), n_channels=1, d_model=32)
    if arm == "unordered":
        embed.positions.table.requires_grad_(requires_grad=False).zero_()
    norm = LayerNorm(32)
    model = VisionTransformer(embed, blocks(32, 64), 10, norm=norm)
    shown = scattered if arm == "scattered" else nn.Identity()

    def losses() -> Iterator[Tensor]:
        while True:
            some = torch.randint(len(train.labels), (64,))
            logits = model(shown(train.images[some])[:, None])
            yield F.cross_entropy(logits, train.labels[some])

    def read(budget: int) -> dict[str, float]:
        seen = shown(test.images)[:, None]
        right = model(seen).argmax(dim=-1) == test.labels
        return {"right": right.float().mean().item()}

    return model, losses(), read


TASKS = {
    "language": language_task,
    "digits": digits_task,
    "sentiment": sentiment_task,
}


def run(
    seed: int, *, task: str, arm: str, rate: float = 0.0
) -> dict[str, float]:
    """Train once, and read at each budget."""
    if arm == "bigram":
        return bigram(seed)
    torch.manual_seed(seed)
    model, losses, read = TASKS[task](arm, seed, rate)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    found, done = {}, 0
    for budget in BUDGETS[task]:
        for loss in islice(losses, budget - done):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        done = budget
        state = torch.get_rng_state()  # reading draws nothing from training
        with torch.no_grad():
            now = read(budget)
        torch.set_rng_state(state)
        alone = ("written", "different")
        found |= {
            name if name.startswith(alone) else f"{name}, {budget}": number
            for name, number in now.items()
        }
    return found
