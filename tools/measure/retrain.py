"""Train a committed experiment anew, with seeds that no chapter has seen.

    python -m tools.measure.retrain              of a chapter drawn at random
    python -m tools.measure.retrain --seed 7     another draw
    python -m tools.measure.retrain scaling      of this chapter

What a chapter concludes compares runs: one arm is above another. Drawn are two
settings that differ in one thing and of which every committed seed agrees: all
runs of one lie above all of the other, by more than either spreads. Both are
trained with a fresh seed, which has to agree as well. And one of the committed
seeds is trained again where that is cheap; its numbers have to come out again.
"""

import argparse
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from types import ModuleType
from typing import Any

import torch

from selfattn.measurements import measured
from tools.measure.experiments import chapters, load

Setting = dict[str, Any]


@dataclass(frozen=True)
class Direction:
    """Of one number, the settings where it is low and where it is high."""

    name: str
    low: Setting
    high: Setting
    ranges: tuple[tuple[float, float], tuple[float, float]]


def runs_in(setting: Setting, runs: list[dict]) -> list[dict]:
    """The committed runs of one setting, a seed each."""
    return [run for run in runs if setting.items() <= run.items()]


def numbers(experiment: ModuleType, runs: list[dict]) -> list[str]:
    """The names of what was measured, which every one of these runs has."""
    given = {"seed"}.union(*experiment.SETTINGS)
    common = set.intersection(*(set(run) for run in runs)) - given
    return sorted(x for x in common if all(finite(run[x]) for run in runs))


def finite(value: Any) -> bool:
    """Whether a run kept a number there."""
    return isinstance(value, int | float) and math.isfinite(value)


def directions(experiment: ModuleType, runs: list[dict]) -> list[Direction]:
    """All pairs of settings that every committed seed puts in one order."""
    found = []
    for one, other in combinations(experiment.SETTINGS, 2):
        if one.keys() != other.keys():
            continue
        if sum(one[key] != other[key] for key in one) == 1:
            found += ordered(experiment, one, other, runs)
    return found


def ordered(
    experiment: ModuleType, one: Setting, other: Setting, runs: list[dict]
) -> Iterator[Direction]:
    """The numbers in which one setting is clearly above the other."""
    a, b = runs_in(one, runs), runs_in(other, runs)
    for name in numbers(experiment, a + b):
        low, high = (
            (min(run[name] for run in part), max(run[name] for run in part))
            for part in (a, b)
        )
        settings = (one, other)
        if low > high:
            low, high, settings = high, low, (other, one)
        widest = max(low[1] - low[0], high[1] - high[0])
        if high[0] - low[1] > max(widest, 2 * experiment.TOLERANCE):
            yield Direction(name, *settings, (low, high))


def against(experiment: ModuleType, pair: Direction, seed: int) -> list[str]:
    """Train both settings with a seed; what is wrong with their order."""
    found = [
        experiment.run(seed, **setting)[pair.name]
        for setting in (pair.low, pair.high)
    ]
    for setting, number, (least, most) in zip(
        (pair.low, pair.high), found, pair.ranges, strict=True
    ):
        where = "within" if least <= number <= most else "outside"
        print(f"  seed {seed}, {setting}: {pair.name} {number:.4g}, {where}")
        print(f"    what was committed, {least} to {most}", flush=True)
    if found[0] < found[1]:
        return []
    return [
        f"{pair.name} of seed {seed}: {found[0]:.4g}, not below {found[1]:.4g}"
    ]


def again(experiment: ModuleType, runs: list[dict], seed: int) -> list[str]:
    """Train the cheapest setting with a committed seed; what is otherwise."""
    made = experiment.run(seed, **experiment.SMALLEST)
    (committed,) = runs_in({"seed": seed, **experiment.SMALLEST}, runs)
    return [
        f"{name} of seed {seed}: {number:.4f}, committed as {committed[name]}"
        for name, number in made.items()
        if abs(number - committed[name]) > experiment.TOLERANCE
    ]


def retrained(
    experiment: ModuleType, runs: list[dict], rng: random.Random
) -> list[str]:
    """A drawn direction with a fresh seed, and a drawn seed once more."""
    fresh = max(experiment.SEEDS) + rng.randint(1, 10**6)
    old = rng.choice(list(experiment.SEEDS)[1:])  # the tests train the first
    wrong = again(experiment, runs, old)
    found = directions(experiment, runs)
    for pair in rng.sample(found, k=min(1, len(found))):
        print(f"{pair.name} is lower in {pair.low}\n  than in {pair.high}")
        wrong += against(experiment, pair, fresh)
    return wrong


def main() -> int:
    """Draw, train, compare; red if an order or a number is another."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("chapter", nargs="?", choices=chapters())
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    drawn = rng.choice(chapters())
    chapter = asked.chapter or drawn
    print(f"{chapter}, draw {asked.seed}:")
    torch.set_num_threads(1)
    wrong = retrained(load(chapter), measured(chapter)["runs"], rng)
    print("\n".join(wrong) or "as committed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
