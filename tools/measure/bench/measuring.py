"""One race, measured: time, bytes and errors of every candidate."""

import resource
import time
from collections.abc import Callable, Iterator
from statistics import median, quantiles

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from selfattn.cost import allocated_bytes
from tools.measure.bench.race import HEADS, D, Race

ROWS = 256  # the last queries, whose outputs and gradients are checked
FEW, MANY, MOST = 5, 20, 200  # rounds
AGREE = 0.03  # spread of ratios under which few rounds are enough


def inputs(race: Race) -> list[Tensor]:
    """The same numbers for everyone, and the same in every run."""
    torch.manual_seed(0)
    shape = (1, race.n, HEADS * D) if race.layer else (1, HEADS, race.n, D)
    count = 1 if race.layer else 3
    return [
        torch.randn(shape, requires_grad=race.training) for _ in range(count)
    ]


def runner(f, given: list[Tensor], training: bool) -> Callable[[], object]:
    """One call of a candidate, in training with its way back.

    The way back ends at the inputs and at the weights of a layer.
    """
    if not training:

        def run():
            with torch.inference_mode():
                return f(*given)

        return run
    weights = list(f.parameters()) if isinstance(f, nn.Module) else []
    with torch.no_grad():
        grad = torch.ones_like(f(*given))

    def run_and_back():
        # A library's layer may have weights that this call does not use.
        return torch.autograd.grad(
            f(*given), [*given, *weights], grad, allow_unused=True
        )

    return run_and_back


def shares(run: Callable[[], object], most: int = 16) -> dict[str, float]:
    """The operations that take longest, as shares of all their time."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        run()
    spent = {one.key: one.self_cpu_time_total for one in seen.key_averages()}
    longest = sorted(spent, key=lambda name: -spent[name])[:most]
    total = sum(spent.values())
    return {name: round(spent[name] / total, 3) for name in longest}


def faults(run: Callable[[], object]) -> int:
    """How many pages a call touches for the first time."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    run()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def errors(race: Race, name: str, given: list[Tensor]) -> dict[str, float]:
    """How far the last outputs are off, and in training their gradients.

    Against the definition in float64, where there is one: the largest
    difference of an output, and that of an input's gradient as a part of the
    largest gradient. The gradients are those of the outputs that are checked,
    weighted at random.
    """
    if name not in race.expected:
        return {}
    mine = [x.detach().requires_grad_(race.training) for x in given]
    exact = [x.detach().double() for x in mine]
    exact = [x.requires_grad_(race.training) for x in exact]
    with torch.set_grad_enabled(race.training):
        got = race.candidates[name](*mine)[..., -ROWS:, :]
        first, *others = exact
        last = first[..., -ROWS:, :]
        want = race.expected[name](last, *(others or [first]))
    found = {"error": (got - want).abs().max().item()}
    if race.training:
        weights = torch.randn_like(want)
        ours = torch.autograd.grad(got, mine, weights.to(got))
        theirs = torch.autograd.grad(want, exact, weights)
        found["gradient_error"] = max(
            ((a - b).abs().max() / b.abs().max()).item()
            for a, b in zip(ours, theirs, strict=True)
        )
    return {kind: float(f"{off:.1e}") for kind, off in found.items()}


def times(
    runs: dict[str, Callable[[], object]], budget: float, many: int = MANY
) -> dict[str, list[float]]:
    """Seconds of processor time of each in every round, in turn.

    At least ``many`` rounds, or fewer, but no less than five, where so many
    take longer than the budget and the ratios agree within three per cent.
    Every second round goes the other way, so that nobody always comes after
    the same neighbour.
    """
    took: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()  # warms up
    start, rounds = time.time(), 0
    while rounds < MOST:
        in_time = time.time() - start < budget
        if rounds >= many and not in_time:
            break
        if rounds >= min(FEW, many) and not in_time and settled(took):
            break
        for name in list(runs)[:: -1 if rounds % 2 else 1]:
            begin = time.process_time()
            runs[name]()
            took[name].append(time.process_time() - begin)
        rounds += 1
    return took


def speeds(
    took: dict[str, list[float]], name: str, beside: str | None = None
) -> list[float]:
    """How many times as fast as another, in every round.

    Args:
        took: seconds of each in every round.
        name: who.
        beside: than whom; than the first of the race if no one is named.
    """
    other = took[beside or next(iter(took))]
    return [a / b for a, b in zip(other, took[name], strict=True)]


def quartiles(ratios: list[float]) -> tuple[float, float]:
    """Where the middle half of the rounds lies."""
    if len(ratios) < 2:
        return ratios[0], ratios[0]
    low, _, high = quantiles(ratios, method="inclusive")
    return low, high


def compared(took: dict[str, list[float]], name: str) -> dict[str, object]:
    """The median of the ratios to the first, its quartiles, and if 1 is in."""
    ratios = speeds(took, name)
    low, high = quartiles(ratios)
    return {
        "speed": round(median(ratios), 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "tie": name != next(iter(took)) and low <= 1 <= high,
    }


def beside_mine(
    took: dict[str, list[float]], name: str, mine: str | None
) -> dict[str, object]:
    """The same against this package's, and in how many rounds it was ahead.

    Two ratios to a third each have that one's noise, too, so who of two is
    ahead is told by the two alone.
    """
    if mine is None:
        return {}
    ratios = speeds(took, name, mine)
    numbers = (median(ratios), *quartiles(ratios))
    middle, low, high = (round(x, 3) for x in numbers)
    ahead = sum(ratio > 1 for ratio in ratios)
    return {"to_mine": [low, middle, high], "ahead": ahead}


def settled(took: dict[str, list[float]]) -> bool:
    """Whether half of the rounds lie within three per cent for everyone."""
    for name in took:
        ratios = speeds(took, name)
        low, high = quartiles(ratios)
        if high - low > AGREE * median(ratios):
            return False
    return True


def measure(race: Race, budget: float, many: int = MANY) -> Iterator[dict]:
    """A line for each candidate."""
    given = inputs(race)
    runs = {
        name: runner(f, given, race.training)
        for name, f in race.candidates.items()
    }
    began, busy = time.perf_counter(), time.process_time()
    took = times(runs, budget, many)
    share = (time.process_time() - busy) / (time.perf_counter() - began)
    touched = {name: faults(run) for name, run in runs.items()}
    held = {name: allocated_bytes(run) for name, run in runs.items()}
    first = next(iter(runs))
    for name in runs:
        yield {
            "race": race.name,
            "n": race.n,
            "pass": "training" if race.training else "forward",
            "who": name,
            "ms": round(1000 * median(took[name]), 2),
            **compared(took, name),
            **beside_mine(took, name, race.mine),
            "bytes": held[name],
            "memory": round(held[name] / held[first], 3),
            "faults": touched[name],
            **dict.fromkeys(("error", "gradient_error")),  # where not known
            **errors(race, name, given),
            "rounds": len(took[name]),
            "share": round(share, 3),
            "shares": shares(runs[name]),
        }
