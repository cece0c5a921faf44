"""What attention added: dates through one vector, and three questions.

Dates: a network of two GRUs reads one, two or three dates in letters and
writes them in digits, with and without a look back at the letters. "blind"
looks back as "general" does, with as many parameters, but at copies of the
one vector; "mean" has nothing to choose either, and is told the plain mean of
all states. Questions: three small networks answer whether a pattern is there,
which mark came last, or what stands in the eighth place, from few examples and
from many; "earliest" is "latest" with every text reversed, and "recurrent,
largest" the recurrent network, read as the two others are.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selfattn import MultiHeadAttention
from selfattn.data.dates import CHARACTERS, N_TARGET, date_batches, encode
from selfattn.data.evidence import N_TOKENS, N, question_batches
from selfattn.origins import (
    AdditiveAttention,
    Convolution,
    MultiplicativeAttention,
    Recurrent,
    Translator,
)

ABOUT = (
    "Dates: a translator of a width, trained at a rate for 400 steps on new "
    "texts of so many dates; after 200, 300 and 400 steps, on 200 other "
    "texts, the share of characters right when those before are given "
    "(characters) and "
    "of dates of which all ten are (dates). Questions: a network of width 32 "
    "trained on so many examples; after 100, 200 and 300 steps, the share of "
    "right answers to 1000 other sequences. Guessing is right in half. The "
    "recurrent network answers from its last state, the others from the "
    "largest of each feature over all places, and so does 'recurrent, "
    "largest'; 'earliest' is 'latest' with every text reversed. Alignment: "
    "the translator of one date after 200 steps; where it looks while it "
    "writes 2021-03-09 for '9 March 2021' and six blanks: the weight of the "
    "key in the row of the character, both counted from 0."
)
SEEDS = range(5)
BATCH, WIDTH, RATE = 32, 32, 0.01
SETTINGS = [
    {"task": "dates", "dates": dates, "width": 64, "arm": arm, "rate": RATE}
    for dates in (1, 2, 3)
    for arm in ("none", "general", "blind")
]
NETWORKS = ("convolution", "recurrent", "attention")
SETTINGS += [
    {"task": "question", "question": question, "size": size, "arm": arm}
    for question in ("pattern", "latest", "place")
    for size in (64, 256, 1024)
    for arm in NETWORKS
]
SETTINGS += [
    {"task": "question", "question": "place", "size": size, "arm": arm}
    for size in (64, 256, 1024)
    for arm in ("convolution, places", "attention, no places")
]
SETTINGS += [
    {"task": "question", "question": question, "size": size, "arm": arm}
    for question, arm in (
        ("latest", "recurrent, largest"),
        ("earliest", "recurrent, largest"),
        ("earliest", "recurrent"),
    )
    for size in (64, 256, 1024)
]
SETTINGS += [
    {"task": "dates", "dates": 2, "width": 64, "arm": "mean", "rate": RATE}
]
SETTINGS += [
    {"task": "alignment", "arm": arm} for arm in ("additive", "general")
]
SETTINGS += [  # does the one vector want more numbers?
    {"task": "dates", "dates": 2, "width": width, "arm": arm, "rate": RATE}
    for width, arm in ((32, "none"), (32, "general"), (16, "none"))
]
SETTINGS += [  # and does the look want this rate?
    {"task": "dates", "dates": dates, "width": 64, "arm": arm, "rate": rate}
    for rate in (0.003, 0.03)
    for dates, arms in (
        (1, ("none", "blind", "general")),
        (2, ("none", "blind", "general", "mean")),
        (3, ("none", "general")),
    )
    for arm in arms
]
SMALLEST = {
    "task": "question",
    "question": "pattern",
    "size": 256,
    "arm": "convolution",
}
# Another processor adds in another order; this network is right nearly
# everywhere, from the first reading on.
TOLERANCE = 0.02
DATES_AT, QUESTIONS_AT = (200, 300, 400), (100, 200, 300)


def run(seed: int, *, task: str, **setting: str | float) -> dict[str, float]:
    """Train once, and look at it three times on the way."""
    torch.manual_seed(seed)
    tasks = {"dates": translate, "question": answer, "alignment": look_back}
    return tasks[task](seed, **setting)


class Blind(MultiplicativeAttention):
    """Luong's attention, given the last of both directions at each key."""

    def forward(self, q, k, v, **options):
        """Attend to as many copies of the one vector as there are keys."""
        half = k.shape[-1] // 2
        ends = torch.cat((k[:, -1:, :half], k[:, :1, half:]), dim=-1)
        copies = ends.expand_as(k)
        return super().forward(q, copies, copies, **options)


class Mean(MultiplicativeAttention):
    """Tells every query the plain mean of what was read."""

    def forward(self, q, k, v, **options):
        """Use no weights: there is nothing to choose."""
        return v.mean(dim=-2, keepdim=True).expand(-1, q.shape[-2], -1)


def looks(arm: str, width: int) -> nn.Module | None:
    """How the writer looks back."""
    return {
        "none": lambda: None,
        "general": lambda: MultiplicativeAttention(width, width),
        "additive": lambda: AdditiveAttention(width, width, width),
        "blind": lambda: Blind(width, width),
        "mean": lambda: Mean(width, width),
    }[arm]()


def texts(size: int, dates: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Texts of several dates: their letters, and their digits."""
    for source, target in date_batches(size * dates, seed=seed):
        yield source.reshape(size, -1), target.reshape(size, -1)


def learning(
    model: Translator,
    batches: Iterator[tuple[Tensor, Tensor]],
    steps: int,
    rate: float = RATE,
) -> Iterator[int]:
    """Train a translator, a step at a time; how many were made."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(1, steps + 1):
        x, y = next(batches)
        logits = model(x, F.pad(y, (1, 0))[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield step


def translate(
    seed: int, *, dates: int, width: int, arm: str, rate: float = RATE
) -> dict[str, float]:
    """Train a translator on texts that are always new."""
    kinds = len(CHARACTERS)
    model = Translator(kinds, kinds, width, attend=looks(arm, width))
    source, target = next(texts(200, dates, 10_000 + seed))
    found = {}
    batches = texts(BATCH, dates, seed)
    for step in learning(model, batches, DATES_AT[-1], rate):
        if step in DATES_AT:
            right = written(model, source, target)
            whole = right.unflatten(-1, (-1, N_TARGET)).all(dim=-1)
            found[f"characters {step}"] = right.float().mean().item()
            found[f"dates {step}"] = whole.float().mean().item()
    return found


def look_back(seed: int, *, arm: str) -> dict[str, float]:
    """Where a trained translator looks, a weight a pair of characters."""
    kinds = len(CHARACTERS)
    model = Translator(kinds, kinds, 64, attend=looks(arm, 64))
    for _ in learning(model, texts(BATCH, 1, seed), DATES_AT[0]):
        pass
    source, target = encode("9 March 2021      "), encode("2021-03-09")
    with torch.no_grad():
        told = F.pad(target, (1, 0))[None, :-1]
        rows = model.alignment(source[None], told)[0].tolist()
    return {
        f"{i}, {j}": weight
        for i, row in enumerate(rows)
        for j, weight in enumerate(row)
    }


@torch.no_grad()
def written(model: Translator, source: Tensor, target: Tensor) -> Tensor:
    """Which characters are right, those before being given."""
    logits = model(source, F.pad(target, (1, 0))[:, :-1])
    return logits.argmax(dim=-1) == target


class Answers(nn.Module):
    """Embedded tokens, one layer that mixes them, and a yes or no.

    A recurrent network answers from its last state, unless the arm says
    "largest"; the others from the largest of each feature, wherever that is.
    """

    def __init__(self, arm: str) -> None:
        super().__init__()
        mixer, _, change = arm.partition(", ")
        self.embed = nn.Embedding(N_TOKENS, WIDTH)
        placed = change == "places" or arm == "attention"
        self.places = nn.Parameter(torch.randn(N, WIDTH)) if placed else None
        self.mix = {
            "convolution": lambda: Convolution(WIDTH, kernel=3, n_layers=2),
            "recurrent": lambda: Recurrent(
                nn.GRU(WIDTH, WIDTH, batch_first=True)
            ),
            "attention": lambda: MultiHeadAttention(WIDTH, 2),
        }[mixer]()
        self.mixer = mixer
        self.last = arm == "recurrent"
        self.work = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.say = nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        """How much speaks for yes, (batch,)."""
        x = self.embed(x)
        if self.places is not None:
            x = x + self.places
        h = self.mix(x)
        if self.mixer == "attention":
            h = x + h
        h = self.work(h)
        h = h[:, -1] if self.last else h.amax(dim=1)
        return self.say(h)[:, 0]


def examples(question: str, size: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """So many texts and answers; the earliest mark is last, read backwards."""
    turned = question == "earliest"
    asked = "latest" if turned else question
    x, y = next(question_batches(asked, size, seed=seed))
    return (x.flip(1) if turned else x), y


def answer(
    seed: int, *, question: str, size: int, arm: str
) -> dict[str, float]:
    """Train a network on a fixed number of examples."""
    model = Answers(arm)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    (x, y), (asked, truth) = (
        examples(question, many, seed=start)
        for many, start in ((size, seed), (1000, 10_000 + seed))
    )
    generator, found = torch.Generator().manual_seed(seed), {}
    for step in range(1, QUESTIONS_AT[-1] + 1):
        some = torch.randint(size, (BATCH,), generator=generator)
        loss = F.binary_cross_entropy_with_logits(
            model(x[some]), y[some].float()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in QUESTIONS_AT:
            with torch.no_grad():
                right = (model(asked) > 0) == truth
            found[f"right {step}"] = right.float().mean().item()
    return found
