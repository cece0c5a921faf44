"""What trained heads do, by their weights, and by what the loss says.

Two tasks. *Tales* (`selfattn.data.tales`): a small decoder foretells three
kinds of text. Heads are named by where they look, and switched off one at a
time; linear probes read what each layer holds, beside control tasks. *Two
look-ups* (`selfattn.data.two_lookups`): what one head brings back is replaced
by what it brings back from another text. The model of the page is trained
on tales as well, for longer:

    python -m tools.measure.experiments.looking_inside

trains it, and writes its weights where the lab reads them.
"""

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn.data.tales import WORDS, Tales, tale_batches
from selfattn.data.two_lookups import two_lookup_batches
from selfattn.labs.looking_inside_model import (
    DEPTH,
    STORED,
    packed,
    small_decoder,
)
from selfattn.looking_inside import (
    change_heads,
    heads_of,
    record_heads,
    record_weights,
    weight_on,
)
from selfattn.models import Decoder
from tools.measure.experiments._probes import probes, texts
from tools.measure.experiments._readers import Reader

ABOUT = (
    "Tales: decoders of two blocks of 4 heads and a width of 32, trained for "
    "600 steps of 32 texts to foretell echoes, agreement and coreference; of "
    "the words that need a look back, in 400 new texts of each kind, the loss "
    "and the share right. Of the head that looks most at the token before "
    "(previous), at what followed last time (induction), at the subject or "
    "at who it was (looker): its weight, its block, the loss without it, and "
    "its rank among all heads by that loss; how many heads have more than 0.3 "
    "(heads), the loss without all of these, what it would be if what each "
    "costs alone were added up (summed), and the loss without as many heads "
    "that look there least (not); the loss without the worst and without the "
    "middle head; and the largest such weight of an idle "
    "head, one without which the loss is within a tenth of the way from the "
    "least to the most that taking out one head costs. By layer, 0 being the "
    "embedding, the share that a linear probe reads right, that of its "
    "control task (control), and both in the same model before its training "
    "(untrained). Two look-ups: one layer of two heads, trained for 500 "
    "steps; one head's output is taken from a text with the same names and "
    "other digits: share of new sentences with both digits right before "
    "(both), of the patched head's own digits that follow, of the others that "
    "stay, and whether the two heads own different digits (apart)."
)
SEEDS = range(5)
RATES = (0.007, 0.01, 0.014)
SETTINGS: list[dict[str, Any]] = [
    {"task": "tales", "depth": 2, "rate": rate} for rate in RATES
]
SETTINGS += [
    {"task": "two look-ups", "width": 32, "rate": rate}
    for rate in (0.005, 0.01, 0.02)
]
SMALLEST = {"task": "two look-ups", "width": 32, "rate": 0.01}
# Another processor adds in another order, and hundreds of steps of Adam
# amplify the last digit; the shares that the test compares are near one.
# A tale's numbers are no such shares: trained a second time on one machine,
# two of the fifteen models took another course from some last digit on.
TOLERANCE = 0.03

STEPS, BATCH, LOOKUP_STEPS = 600, 32, 500
PAGE_STEPS, PAGE_BATCH, PAGE_RATE = 1000, 48, 0.006
LOOKS = 0.3  # from this weight on, a head is said to look there
VERBS = [WORDS.index("is"), WORDS.index("are")]  # one after the other


def run(seed: int, *, task: str, rate: float, **size: int) -> dict[str, float]:
    """Train once, and look into what has been trained."""
    if task == "two look-ups":
        return run_lookups(seed, size["width"], rate)
    model = train(seed, size["depth"], rate, steps=STEPS, batch=BATCH)
    with torch.no_grad():
        return look_into(model, seed)


def train_page() -> Decoder:
    """The model of the page, after 1000 batches of tales."""
    return train(0, DEPTH, PAGE_RATE, steps=PAGE_STEPS, batch=PAGE_BATCH)


def train(
    seed: int, depth: int, rate: float, *, steps: int, batch: int
) -> Decoder:
    """A model that has read so many batches of tales.

    Of an echo nothing can be foretold before it begins anew, so that its
    first round is left out of the loss.
    """
    torch.manual_seed(seed)
    model = small_decoder(depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    batches = tale_batches(batch, seed=seed)
    for tale in itertools.islice(batches, steps):
        first = int(tale.asked[0]) if len(tale.asked) > 1 else 0
        scores = model(tale.tokens[:, :-1])[:, first:]
        loss = F.cross_entropy(
            scores.flatten(0, 1), tale.tokens[:, first + 1 :].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def asked_loss(model: Decoder, tales: list[Tales]) -> dict[str, float]:
    """The loss, and the share right, of the words that need a look back.

    A verb is chosen among *is* and *are*: that a verb comes, and not another
    noun, nobody can know.
    """
    found = {"loss": 0.0, "right": 0.0}
    for tale in tales:
        scores = model(tale.tokens)[:, tale.asked].flatten(0, 1)
        truth = tale.tokens[:, tale.asked + 1].flatten()
        if set(truth.tolist()) <= set(VERBS):
            scores, truth = scores[:, VERBS], truth - VERBS[0]
        right = (scores.argmax(dim=-1) == truth).float().mean().item()
        found["loss"] += F.cross_entropy(scores, truth).item() / len(tales)
        found["right"] += right / len(tales)
    return found


def look_into(model: Decoder, seed: int) -> dict[str, float]:
    """All that is measured of one trained model."""
    tests = texts(seed)
    found = {}
    for kind, tales in tests.items():
        for name, number in asked_loss(model, tales).items():
            found[f"{kind} {name}"] = number
        found |= by_head(model, kind, tales)
    torch.manual_seed(seed)
    untrained = probes(small_decoder(len(model.blocks)), seed)
    found |= {f"{name}, untrained": x for name, x in untrained.items()}
    return found | probes(model, seed)


def looks(
    model: Decoder, tales: list[Tales], *, before: bool = False
) -> Tensor:
    """Each head's mean weight on where it must look, or one token before."""
    every = []
    for tale in tales:
        with record_weights(model) as weights:
            model(tale.tokens)
        at = tale.asked, tale.where
        if before:
            i = torch.arange(1, tale.tokens.shape[1])
            at = i, (i - 1).expand(len(tale.tokens), -1)
        every.append(torch.cat([weight_on(w, *at) for w in weights]))
    return torch.stack(every).mean(dim=0)


def by_head(model: Decoder, kind: str, tales: list[Tales]) -> dict[str, float]:
    """What the heads that look somewhere do, and what the loss says of it."""
    names = list(heads_of(model))
    without = torch.tensor([lost(model, [name], tales) for name in names])
    named = {"looker": looks(model, tales)}
    if kind == "echo":
        named = {
            "induction": named["looker"],
            "previous": looks(model, tales, before=True),
        }
    found = {
        f"{kind} without worst": without.max().item(),
        f"{kind} without middle": without.median().item(),
    }
    for role, weight in named.items():
        top = int(weight.argmax())
        found |= {
            f"{kind} {role} weight": weight[top].item(),
            f"{kind} {role} block": float(names[top].split(".")[0]),
            f"{kind} without {role}": without[top].item(),
            f"{kind} {role} rank": 1.0 + (without > without[top]).sum().item(),
        }
        rise = without - without.min()
        idle = weight[rise < 0.1 * rise.max()]
        found[f"{kind} {role} idle"] = idle.max().item() if len(idle) else 0.0
        for name, number in together(model, weight, without, tales).items():
            found[f"{kind} {name.format(role)}"] = number
    return found


def together(
    model: Decoder, weight: Tensor, without: Tensor, tales: list[Tales]
) -> dict[str, float]:
    """What the heads that look somewhere cost together; and one by one.

    Beside them: as many heads, of those that look there least.
    """
    names = list(heads_of(model))
    order = weight.argsort(descending=True).tolist()
    many = int((weight > LOOKS).sum())
    whole = asked_loss(model, tales)["loss"]
    looking = [names[i] for i in order[:many]]
    others = [names[i] for i in order[len(order) - many :]]
    return {
        "{} heads": float(many),
        "without {} heads": lost(model, looking, tales),
        "without {} heads, summed": (
            whole + (without[order[:many]] - whole).sum().item()
        ),
        "without as many, not {}": lost(model, others, tales),
    }


def lost(model: Decoder, names: list[str], tales: list[Tales]) -> float:
    """The loss with these heads switched off."""
    with change_heads(model, dict.fromkeys(names, 0.0)):
        return asked_loss(model, tales)["loss"]


def run_lookups(seed: int, width: int, rate: float) -> dict[str, float]:
    """Train two heads for two look-ups, and patch one of them."""
    torch.manual_seed(seed)
    model = Reader(2, width=width)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    batches = two_lookup_batches(64, seed=seed)
    for x, target, _ in itertools.islice(batches, LOOKUP_STEPS):
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
