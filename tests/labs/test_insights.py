"""What a lab says there is to see is so, and its buttons lead somewhere."""

import math
import random
import re

import pytest

from selfattn.labs.blocks import BlocksLab
from selfattn.labs.cost import CostLab
from selfattn.labs.devices import DevicesLab
from selfattn.labs.doctor import DoctorLab, probes
from selfattn.labs.dot_product import DotProductLab
from selfattn.labs.flash import FlashLab
from selfattn.labs.intro import IntroLab
from selfattn.labs.layers import LayersLab
from selfattn.labs.linear import LinearLab
from selfattn.labs.linformer import LinformerLab
from selfattn.labs.looking_inside import LookingInsideLab
from selfattn.labs.machinery.settings import Choice, Flag, Number, Whole
from selfattn.labs.masks import MasksLab
from selfattn.labs.models import ModelsLab
from selfattn.labs.multihead import MultiheadLab
from selfattn.labs.origins import OriginsLab
from selfattn.labs.overview import OverviewLab
from selfattn.labs.performer import PerformerLab
from selfattn.labs.positions import PositionsLab
from selfattn.labs.reformer import ReformerLab
from selfattn.labs.scaling import ScalingLab
from selfattn.labs.sparse import SparseLab
from selfattn.labs.swin import SwinLab
from selfattn.labs.window import WindowLab

SETTINGS = 20  # each, drawn at random
NO_SENTENCE = re.compile(r"undefined|null|\[object|Infinity|NaN(?! can|\.$)")


def second_table(lab):
    """How many words look most at another word with the second head."""
    first, second = lab.weights().argmax(dim=-1)
    return [f"{(first != second).sum()} of the {lab.n} words look most at an"]


def power(x):
    """As the lab on the block writes a number of any size."""
    if x < 1e-12:
        return "nothing"
    if 1e-3 <= x < 1000:
        return f"{x:.3f}"
    log = math.floor(math.log10(x))
    return f"{x / 10**log:.1f} · 10 to the power of {log}"


def bytes_in_words(number):
    """Three digits and a unit."""
    step = math.floor(math.log10(number) / 3)
    digits = number / 1000**step
    places = 2 - math.floor(math.log10(digits))
    return f"{digits:.{max(0, places)}f} {' kMGTPE'[step].strip()}B"


def who_was_found(lab):
    now = lab.state()
    many, percent = sum(now.seen), math.floor(100 * now.weight + 0.5)
    said = [f"Token {lab.token + 1} "]
    if many:
        keys = "1 other" if many == 1 else f"{many} others"
        said += [f"sees {keys} of {now.allowed}, ", f"gives {percent}%"]
    else:
        said += [f"no other of {now.allowed}, and sees only itself"]
    if now.lost:
        said += [f"{now.lost} more ", f"by the chunks of {lab.chunk}."]
    return said


def stood_for(lab):
    now = lab.seen()

    def percent(x):
        return f"{math.floor(100 * x + 0.5)}%"

    return [
        f"Token {lab.token + 1} would give {percent(now.weights[now.best])}",
        f" for {percent(now.stands[now.best])} on it.",
        f"{percent(now.later)} of the weight",
    ]


def who_was_heard(lab):
    now = lab.state()
    many = sum(layers >= 0 for layers in now.after)
    said = [f"row {lab.row + 1}, column {lab.column + 1}, has heard {many} of"]
    said += [f"Of the {now.touching} that touch it, {now.met} shared"]
    if lab.shifted and not lab.masked and lab.layers > 1:
        said += ["Nothing hides"]
    return said


def listened(lab):
    weights = lab.steps().weights[lab.asks].tolist()
    percent = math.floor(100 * max(weights) + 0.5)
    return (
        [lab.words.split(" ")[lab.asks], f"{percent}%"]
        if (sum(weight > 0 for weight in weights) > 1)
        else ["sees one word"]
    )


def looked(lab):
    weights = lab.steps().weights[lab.query]
    seen = int((weights > 0).sum())
    if seen < 2:
        return [["may see nothing", "sees one key"][seen]]
    return [f"{weights.max():.3f}"]


def shown_product(lab):
    curves = lab.pictured().curves
    product = curves[0, lab.key].item()
    if lab.encoding == "alibi":
        return [f"{abs(lab.query - lab.key)} away", f"{math.exp(product):.3f}"]
    return [f"The product is {product:.3f}"]


def what_survived(lab):
    trace = lab.trace()
    kept = [i for i, x in enumerate(trace.distinct) if x >= 1e-3][-1]
    end = power(trace.distinct[-1]) if kept == lab.depth else f" {kept + 1} b"
    return [end, f"reaches the input is {power(trace.path[0])}"]


def leaks(lab):
    now = lab.seen()
    told = {"what comes later": now.future, "padding": now.padding}
    cells = {1: "1 cell"}
    return [
        f"{cells.get(count, f'{count} cells')} hear {what}"
        for what, count in told.items()
        if count
    ] or ["They hear n"]


def left_over(lab):
    now = lab.seen()
    told = [f"drawn with {max(now.chances):.3f}"]
    if now.kept == 1:
        return [*told, "no choice is left"]
    return [*told, f" {now.kept} letters", f"{now.perplexity:.2f} alike"]


def collected(lab):
    now = lab.state()
    if now.m is None:
        return ["Nothing has been read"]
    told = [f"{now.total:.3f}"]
    after = (lab.read - 1) * 8 // lab.tiles > lab.position
    if after:
        return [*told, "is skipped"]
    if now.shrink not in (None, 1.0):
        told.append(f"shrinks to {now.shrink:.3f}")
    return told


def brought_back(lab):
    if lab.read == 0:
        return ["Nothing has been written"]
    now = lab.seen()
    x, y = now.back[lab.ask]
    told = [f"({x:.3f}, {y:.3f})", f"{now.right} of {now.keys} key"]
    off = now.off[lab.ask]
    if off is None:
        return [*told, "nothing was written with it"]
    return [*told, "which was written last" if off < 5e-4 else f"{off:.3f}"]


def share_in_words(x):
    """A share: a percentage, and from ten on so many times."""
    if abs(x) >= 10:
        return f"{math.floor(abs(x) + 0.5)} times"
    return f"{math.floor(100 * abs(x) + 0.5)}%"


def estimated(lab):
    now = lab.seen()
    told = [f"is {now.exact:.3f}; {lab.m} directions say"]
    told += [f"±\N{NO-BREAK SPACE}{share_in_words(now.spread)}"]
    told += [f"carries {share_in_words(now.largest)}"]
    if abs(now.off) < 0.005:
        return [*told, "right to a percent"]
    how = "too high" if now.off > 0 else "too low"
    return [*told, f"{share_in_words(now.off)} {how}"]


def looked_into(lab):
    now = lab.read()
    row = now.weights[lab.head][-1]
    most = max(range(len(row)), key=row.__getitem__)
    least = f"{max(now.without):.3f} without it"
    whole = [f"instead of {now.whole:.3f}"] if now.off else []
    return [
        f"{now.loss:.3f} nats",
        f"“{now.read[most]}” (word {most})",
        f"expects “{now.guesses[0][0]}”",
        least,
        *whole,
    ]


def shared_out(lab):
    ours = lab.shares()
    if lab.ranks == 1:
        return ["sends nothing"]
    told = [f" sends {bytes_in_words(ours['ring'].sent)}"]
    if ours["swap"].refused:
        return ["Only the ring is open", ours["swap"].refused, *told]
    times = lab.ranks // 2
    more = "as much as" if times == 1 else f"{times} times as much as"
    large = [way for way in ours.values() if way.held > 80e9]
    return [*told, more, "Too large for" if large else "fits on a GPU"]


def who_heard(lab):
    now = lab.state()
    top = [i for i, heard in enumerate(now.heard[-1]) if heard]
    last = "has not heard it" if top[-1] < 15 else "is among them"
    return [
        f"heard token {lab.token + 1}, ",
        "1 token has" if len(top) == 1 else f"{len(top)} tokens have",
        f"farthest {max(abs(i - lab.token) for i in top)} away",
        f"The last token {last}",
        f"{now.pairs:,} of {now.full:,} pairs",
    ]


def left_to_choose(lab):
    now = lab.chosen()
    here = f"At {lab.n:,} tokens"
    if not now.remain:
        return [f"{here} nothing remains"]
    average = now.average
    return [
        f"{here} {now.remain} of {len(now.rows)} remain",
        "no errors" if average is None else f" is {average:.2f} off",
        "The nearest is " if now.nearest else "operations: ",
    ]


def reached(lab):
    now = lab.state()
    step, key = now.steps[lab.key], f"Key {lab.key + 1} "
    told = [f"{key}it does not reach", f"{key}it sees", f"{key}it reaches"]
    later = lab.causal and lab.key > lab.query
    one = "1 key" if now.steps.count(1) == 1 else f"{now.steps.count(1)} keys"
    ways = [str(m + 1) for m in now.ways] if step == 2 else []
    return [
        f"Query {lab.query + 1} sees {one} and reaches ",
        f" {now.steps.count(2)} more in two steps",
        f"{key}comes later" if later else told[step],
        *ways,
        f"{now.pairs} of {now.full} pairs",
    ]


# Each lab, and what its sentence must say, by the package.
SAYS = {
    IntroLab: listened,
    OriginsLab: lambda lab: [
        f" after {lab.seen().hops} hop",
        f" and {lab.seen().heard} token",
        f" take {lab.seen().steps} step",
    ],
    DotProductLab: looked,
    ScalingLab: lambda lab: [f"{lab.row().peak:.3f}"],
    MasksLab: lambda lab: [
        f": {lab.keep().sum()} of {lab.n * lab.n_q} pairs",
        *(["nothing at all"] if not lab.keep().any(dim=-1).all() else []),
    ],
    MultiheadLab: lambda lab: [
        f" {lab.parameters():,} parameters, {lab.cache_bytes():,} bytes",
        f"a weight of {lab.weights().max():.2f}",
        *(second_table(lab) if lab.n_heads == 2 else []),
    ],
    PositionsLab: shown_product,
    LayersLab: what_survived,
    BlocksLab: leaks,
    ModelsLab: left_over,
    LookingInsideLab: looked_into,
    OverviewLab: left_to_choose,
    FlashLab: collected,
    DevicesLab: shared_out,
    WindowLab: who_heard,
    SparseLab: reached,
    LinearLab: brought_back,
    PerformerLab: estimated,
    ReformerLab: who_was_found,
    LinformerLab: stood_for,
    SwinLab: who_was_heard,
    CostLab: lambda lab: [bytes_in_words(lab.plan().bytes)],
    DoctorLab: lambda lab: (
        [f" {sum(probes(lab.mistake))} "]
        if lab.seen().differs
        else ["cannot be told" if any(probes(lab.mistake)) else "is right"]
    ),
}
LABS = pytest.mark.parametrize("kind", SAYS, ids=lambda kind: kind.stem)


def drawn_at_random(kind, chance):
    """A lab at any setting of its sliders, lists and switches."""
    lab = kind()
    for name, setting in lab.settings().items():
        if isinstance(setting, Choice):
            setattr(lab, name, chance.choice(setting.allowed(lab)))
        if isinstance(setting, Flag):
            setattr(lab, name, chance.random() < 0.5)
        if isinstance(setting, Number):
            stops = round((setting.high - setting.low) / setting.step)
            step = chance.randint(0, stops) * setting.step
            setattr(lab, name, round(setting.low + step, 6))
        if isinstance(setting, Whole):
            high = min(setting.highest(lab), 24)  # the masks are enough so
            setattr(lab, name, chance.randint(setting.low, high))
    return lab


@LABS
def test_what_it_says_is_what_the_package_computes(kind, in_node, unopened):
    chance = random.Random(0)
    labs = [kind(), *(drawn_at_random(kind, chance) for _ in range(SETTINGS))]
    calls = [["seen", lab.values()] for lab in labs]
    said = in_node(kind.stem, calls)
    for lab, sentence in zip(labs, said, strict=True):
        assert not NO_SENTENCE.search(sentence), sentence
        for part in SAYS[kind](lab):
            assert part.replace("-", "−") in sentence, (lab, sentence)
    assert len(set(said)) > 1


@LABS
def test_its_buttons_lead_to_settings_and_answers(kind, in_node, unopened):
    start = kind().values()
    (tried,) = in_node(kind.stem, [["tried", start]])
    assert len(tried) >= 3
    names, many, questions, answers = zip(*tried, strict=True)
    for values, answer in zip(many, answers, strict=True):
        assert kind(**values).values() == values
        assert not NO_SENTENCE.search(answer), answer
        assert answer.endswith((".", "!"))
    assert len(set(names)) == len(set(questions)) == len(names)
    assert len(set(answers)) == len(answers)
