"""The oracle: whether a mutant breaks what the healthy one promises.

It knows nothing of the doctor. The two are called with the same inputs, drawn
within what was promised, mostly in float64, and compared: value, shape, type,
what became of the inputs, gradients; then in the other types that are
promised, and, with modules, in training.
"""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tools.measure.clinic.inputs import Chance, chance, drawn
from tools.measure.clinic.patients import Patient, stirred, whole_copy

TRIALS = 30
LOUD = (1.0, 1.0, 4.0, 1.0, 30.0, 0.03)
NORMS = ("layer-norm", "rms-norm")
TABLES = ("causal-mask", "padding-mask")


class Verdict(NamedTuple):
    """What a mutant is: ill, equivalent, another or broken; and why."""

    is_: str
    why: str = ""


class Answer(NamedTuple):
    """What came back from a call: tensors, or an error in words."""

    tensors: tuple[Tensor, ...] = ()
    error: str = ""
    changed: bool = False


def judged(healthy: Patient, mutant: Patient, kind: str) -> Verdict:
    """Whether a mutant differs from the healthy one where it may not."""
    one, other = (stirred(twin(p.thing)) for p in (healthy, mutant))
    if parameters(one) != parameters(other):
        return Verdict("another", "it has other parameters")
    facts = healthy.facts
    exact = "float64" in facts.get("dtypes", ("float64",))
    found = [
        compare(
            answer(one, given, kind, by),
            answer(other, given, kind, by),
            1e-9 if exact else 1e-4,
        )
        for given, by in trials(healthy, kind, torch.float64, TRIALS)
    ]
    if seen := first_seen(found):
        return seen
    why = (
        in_other_types(healthy, one, other, kind)
        or by_gradient(healthy, one, other, kind)
        or in_training(healthy, one, other, kind)
    )
    return Verdict("ill" if why else "equivalent", why)


def first_seen(found: list[str]) -> Verdict | None:
    """What trials show, one by one: why not, or "". None if all agree.

    One that mostly raises is broken: whoever runs it once knows.
    """
    raised = [why for why in found if why.startswith("raises")]
    if 2 * len(raised) > len(found):
        return Verdict("broken", raised[0])
    ill = (Verdict("ill", why) for why in found if why)
    return next(ill, None)


def parameters(thing: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of what a thing has learnt."""
    if not isinstance(thing, nn.Module):
        return []
    return [(name, tuple(x.shape)) for name, x in thing.named_parameters()]


def trials(
    healthy: Patient, kind: str, dtype: torch.dtype, n: int
) -> Iterator[tuple[dict[str, Any], Chance]]:
    """Inputs within the promise, and what they were drawn with."""
    for seed in range(n):
        loud = min(LOUD[seed % len(LOUD)], healthy.loudest)
        if seed % len(LOUD) == 4 and healthy.loudest > 30:
            loud = healthy.loudest
        empty = "empty_row" in healthy.facts and seed % 5 == 2
        by = chance(seed, dtype, loud, empty)
        described = healthy.inputs[seed % len(healthy.inputs)]
        # One trial has nothing of what may be left out, and one has it all.
        optional = {0: 0.0, 1: 1.0, 2: 1.0}.get(seed, 0.6)
        given = drawn(described, healthy.sizes, by, optional)
        if kind in NORMS and seed % 4 == 3:
            first = next(iter(given))  # whatever it is called
            given[first] = given[first] + 10
        yield given, by


def answer(thing: Any, given: dict[str, Any], kind: str, by: Chance) -> Answer:
    """Call a thing with copies of some inputs."""
    mine = copied(given)
    seed = by.torch.initial_seed()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            value = called(thing, mine, kind, by)
    except (Exception, SystemExit) as error:
        return Answer(error=f"{type(error).__name__}: {error}"[:120])
    changed = not all(same(mine[name], x) for name, x in given.items())
    tensors = value if isinstance(value, tuple | list) else (value,)
    return Answer(
        tuple(t for t in tensors if isinstance(t, Tensor)), "", changed
    )


def copied(given: dict[str, Any]) -> dict[str, Any]:
    """Copies of inputs; what is one tensor twice stays one."""
    return copy.deepcopy(given)


def called(thing: Any, given: dict[str, Any], kind: str, by: Chance) -> Any:
    """What a thing says; a decoder with a cache is fed chunk by chunk."""
    if kind != "cached-decoder":
        return thing(**given)
    (x,) = given.values()
    n, draw = x.shape[1], copy.deepcopy(by.draw)
    cuts = sorted(draw.sample(range(1, n), draw.randint(0, n - 1)))
    cache, said = None, []
    for start, stop in zip([0, *cuts], [*cuts, n], strict=True):
        output, cache = thing(x[:, start:stop], cache)
        said.append(output)
    return torch.cat(said, dim=1)


def same(one: Any, other: Any) -> bool:
    """Whether an input is what it was."""
    if not isinstance(one, Tensor):
        return bool(one == other)
    return torch.equal(one.nan_to_num(), other.nan_to_num())


def compare(right: Answer, other: Answer, tolerance: float) -> str:
    """In what an answer differs from the right one; "" if in nothing."""
    if right.error:
        return ""  # out of its reach: what the other does is its own affair
    if other.error:
        return f"raises {other.error}"
    if other.changed and not right.changed:
        return "changes its input"
    if len(right.tensors) != len(other.tensors):
        return "returns another number of tensors"
    for mine, its in zip(right.tensors, other.tensors, strict=True):
        if mine.shape != its.shape:
            return f"shape {tuple(its.shape)}, not {tuple(mine.shape)}"
        if mine.dtype != its.dtype:
            return f"dtype {its.dtype}, not {mine.dtype}"
        gap = distance(mine, its)
        if not gap <= tolerance * size(mine):
            return f"value, by {gap:.2g}"
    return ""


def distance(one: Tensor, other: Tensor) -> float:
    """The largest difference; NaN and infinities must be the same."""
    if one.numel() == 0:
        return 0.0
    one, other = one.detach().double(), other.detach().double()
    odd = ~one.isfinite() | ~other.isfinite()
    alike = (one == other) | (one.isnan() & other.isnan())
    if bool((odd & ~alike).any()):
        return torch.inf
    return float((one - other).abs().masked_fill(odd, 0).max())


def size(x: Tensor) -> float:
    """The largest finite number, and one at least."""
    finite = x.detach().double().nan_to_num(0, 0, 0)
    return max(1.0, float(finite.abs().max())) if x.numel() else 1.0


def in_other_types(healthy: Patient, one: Any, other: Any, kind: str) -> str:
    """What is wrong in the other types: more than eight times the usual."""
    promised = healthy.facts.get("dtypes", ("float32", "bfloat16", "float16"))
    for name in ("float32", "bfloat16", "float16"):
        if name not in promised or kind in TABLES:
            continue
        dtype = getattr(torch, name)
        fine = trials(healthy, kind, torch.float64, 12)
        for (exact, by), (given, _) in zip(
            fine, trials(healthy, kind, dtype, 12), strict=True
        ):
            ours = answer(of_type(one, dtype), given, kind, by)
            right = answer(one, exact, kind, by)
            if ours.error or right.error or by.loud > 4:
                continue
            pairs = zip(ours.tensors, right.tensors, strict=True)
            usual = max((distance(a, b) for a, b in pairs), default=0)
            if usual == torch.inf:
                continue
            step = torch.finfo(dtype).eps
            theirs = answer(of_type(other, dtype), given, kind, by)
            scale = max((size(t) for t in right.tensors), default=1.0)
            why = compare(ours, theirs, 16 * usual / scale + 16 * step)
            if why:
                return f"in {name}: {why}"
    return ""


def of_type(thing: Any, dtype: torch.dtype) -> Any:
    """A copy of a module in another type; a function is what it was."""
    if not isinstance(thing, nn.Module):
        return thing
    return twin(thing).to(dtype)


def twin(thing: Any) -> Any:
    """A copy. What was noted of a call may hang on a gradient, which PyTorch
    does not copy; it comes without.
    """
    parts = thing.modules() if isinstance(thing, nn.Module) else ()
    noted = [x for part in parts for x in vars(part).values()]
    cut = {
        id(x): x.detach()
        for x in noted
        if isinstance(x, Tensor) and not x.is_leaf
    }
    return whole_copy(thing, cut)


def by_gradient(healthy: Patient, one: Any, other: Any, kind: str) -> str:
    """Whether other gradients flow back to the inputs."""
    for given, by in trials(healthy, kind, torch.float64, 4):
        mine, its = (gradients(t, given, kind, by) for t in (one, other))
        if mine.error:
            continue
        why = compare(mine, its, 1e-6)
        if why:
            return f"gradient: {why}"
    return ""


def gradients(thing: Any, given: dict[str, Any], kind: str, by: Any) -> Answer:
    """The gradients of a sum of squares by each input of numbers."""
    leaves = copied(given)
    numbers = {
        id(x): x.requires_grad_()
        for x in leaves.values()
        if isinstance(x, Tensor) and x.is_floating_point()
    }
    try:
        value = called(thing, leaves, kind, by)
        first = value[0] if isinstance(value, tuple | list) else value
        found = torch.autograd.grad(
            first.square().sum(), list(numbers.values()), allow_unused=True
        )
    except (Exception, SystemExit) as error:
        return Answer(error=f"{type(error).__name__}: {error}"[:120])
    none = torch.zeros(0)
    return Answer(tuple(none if x is None else x for x in found))


def in_training(healthy: Patient, one: Any, other: Any, kind: str) -> str:
    """Whether one is random in training and the other is not."""
    if not isinstance(one, nn.Module):
        return ""
    for given, by in trials(healthy, kind, torch.float64, 3):
        mine, its = (varies(thing, given, kind, by) for thing in (one, other))
        if mine != its:
            return f"in training: random {its}, not {mine}"
    return ""


def varies(thing: Any, given: dict[str, Any], kind: str, by: Chance) -> bool:
    """Whether, in training, ten calls say different things."""
    training = twin(thing).train()
    first, *rest = (
        answer(
            training,
            given,
            kind,
            by._replace(torch=torch.Generator().manual_seed(seed)),
        )
        for seed in range(10)
    )
    return any(compare(first, later, 1e-12) for later in rest)
