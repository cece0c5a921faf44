"""One race, measured: time, bytes and error of every candidate."""

import math
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from selfattn.cost import allocated_bytes
from tools.measure.bench.race import HEADS, D, Race

ROWS = 256  # the last queries, whose outputs are checked


def inputs(race: Race) -> list[Tensor]:
    """The same numbers for everyone, and the same in every run."""
    torch.manual_seed(0)
    shape = (1, race.n, HEADS * D) if race.layer else (1, HEADS, race.n, D)
    count = 1 if race.layer else 3
    return [
        torch.randn(shape, requires_grad=race.training) for _ in range(count)
    ]


def runner(f, given: list[Tensor], training: bool) -> Callable[[], object]:
    """One call of a candidate, with its way back in training."""
    if not training:

        def run():
            with torch.inference_mode():
                return f(*given)

        return run
    with torch.no_grad():
        grad = torch.ones_like(f(*given))
    return lambda: torch.autograd.grad(f(*given), given, grad)


def shares(run: Callable[[], object], most: int = 6) -> dict[str, float]:
    """The operations that take longest, as shares of all their time."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        run()
    spent = {one.key: one.self_cpu_time_total for one in seen.key_averages()}
    longest = sorted(spent, key=lambda name: -spent[name])[:most]
    total = sum(spent.values())
    return {name: round(spent[name] / total, 3) for name in longest}


def error(race: Race, name: str, given: list[Tensor]) -> float | None:
    """The largest error of the last outputs, or None if they are others'."""
    if name not in race.expected:
        return None
    first, *rest = (x.detach().double() for x in given)
    last = first[..., -ROWS:, :]
    others = rest if rest else [first]
    with torch.inference_mode():
        want = race.expected[name](last, *others)
        got = race.candidates[name](*(x.detach() for x in given))
    return (got[..., -ROWS:, :] - want).abs().max().item()


def times(runs: dict[str, Callable[[], object]], budget: float, least: int):
    """The least CPU time of each, in turn, for so many seconds at least."""
    best = dict.fromkeys(runs, math.inf)
    start, rounds = time.time(), -1  # the first round warms up
    while rounds < least or (time.time() - start < budget and rounds < 100):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            took = time.process_time() - begin
            if rounds >= 0:
                best[name] = min(best[name], took)
        rounds += 1
    return best, rounds


def measure(race: Race, budget: float, least: int) -> Iterator[dict]:
    """A line for each candidate."""
    given = inputs(race)
    runs = {
        name: runner(f, given, race.training)
        for name, f in race.candidates.items()
    }
    best, rounds = times(runs, budget, least)
    held = {name: allocated_bytes(run) for name, run in runs.items()}
    first = next(iter(runs))
    for name in runs:
        off = error(race, name, given)
        yield {
            "race": race.name,
            "n": race.n,
            "pass": "training" if race.training else "forward",
            "who": name,
            "ms": round(1000 * best[name], 2),
            "speed": round(best[first] / best[name], 3),
            "bytes": held[name],
            "memory": round(held[name] / held[first], 3),
            "error": None if off is None else float(f"{off:.1e}"),
            "rounds": rounds,
            "shares": shares(runs[name]),
        }
