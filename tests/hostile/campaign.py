"""Which trials there are, and running them: each callable by itself."""

import logging
import math
import multiprocessing
import random
import warnings
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

import torch

from hostile import (
    of_caches,
    of_combinations,
    of_files,
    of_functions,
    of_keeping,
    of_layouts,
    of_modes,
    of_numbers,
    of_shapes,
    of_tables,
    of_transforms,
    of_types,
)
from hostile.callables import Target, targets
from hostile.feeding import Call, NoRecipeError, Sizes, arguments, draw_sizes
from hostile.recipes import ARGUMENTS, MODULES, NEEDS_CUDA
from hostile.scenes import alone
from hostile.trials import Case, plain
from hostile.verdicts import (
    HANG,
    OBSCURE,
    Trial,
    judged,
)

KINDS = (
    *(of_types.trials, of_shapes.trials, of_layouts.trials),
    *(of_numbers.trials, of_tables.trials, of_modes.trials),
    *(of_transforms.trials, of_keeping.trials, of_functions.trials),
    of_combinations.trials,
)
SCENES = {"of files": of_files.trials, "of caches": of_caches.trials}
ROUNDS = 2  # with other sizes and other hostile things each time
QUICK = 4  # trials of each callable
ONE_IN = 12  # callables; to think of a callable's trials takes longest
# Of those whose every call takes a second or so: that many trials.
SLOW = {"cost.allocated": 10, "cost.seconds": 10}


DIED = "the process ended without a word"


class Outcome(NamedTuple):
    """What came of one trial."""

    target: str
    kind: str
    detail: str
    verdict: str
    why: str


def run_all(
    seed: int, only: str, quick: bool, processes: int, share: float = 1.0
) -> Iterator[Outcome]:
    """Every outcome, callable by callable, each in a process of its own; or
    that share of each one's, drawn by the seed.
    """
    known = {t.name: t for t in targets() if not skipped(t.name, quick)}
    names = [name for name in (*SCENES, *known) if only in name]
    names = names[::ONE_IN] if quick else names
    context = multiprocessing.get_context("fork")
    waiting, running = names[::-1], {}
    while waiting or running:
        while waiting and len(running) < processes:
            name = waiting.pop()
            ours, theirs = context.Pipe(duplex=False)
            work = context.Process(
                target=report_on,
                args=(theirs, name, known.get(name), seed, quick, share),
            )
            work.start()
            theirs.close()
            running[ours] = name, "nothing"
        for ready in wait(running):
            try:
                outcome = ready.recv()
            except EOFError:
                name, last = running.pop(ready)
                yield Outcome(
                    name, "a crash", f"{name} after {last}", HANG, DIED
                )
                continue
            if outcome is None:
                del running[ready]
                continue
            running[ready] = outcome.target, outcome.detail
            yield outcome


def report_on(
    to: Connection,
    name: str,
    target: Target | None,
    seed: int,
    quick: bool,
    share: float,
) -> None:
    """Try one callable in this process, and tell of each trial; at last None.

    Whoever does not come to that has died.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable()
    for outcome in run_one(name, target, seed, quick, share):
        to.send(outcome)
    to.send(None)
    to.close()


def skipped(name: str, quick: bool) -> bool:
    """Whether a callable takes seconds for each call, or a GPU."""
    if name in NEEDS_CUDA and not torch.cuda.is_available():
        return True
    return quick and name.startswith(tuple(SLOW))


def run_one(
    name: str,
    target: Target | None,
    seed: int,
    quick: bool,
    share: float = 1.0,
) -> Iterator[Outcome]:
    """All trials of one callable, or a share of them."""
    rng = random.Random(f"{name} {seed}")
    try:
        trials = [*trials_of(name, target, rng, 1 if quick else ROUNDS)]
    except Exception as error:
        why = f"cannot be fed; give it a recipe: {error!r}"
        yield Outcome(name, "a recipe", name, OBSCURE, why)
        return
    at_most = [n for part, n in SLOW.items() if name.startswith(part)]
    wanted = QUICK if quick else math.ceil(share * len(trials))
    some = rng.sample(trials, min([wanted, len(trials), *at_most]))
    if not quick:  # there is one for each
        some += [t for t in trials if t.kind == "compiled" and t not in some]
    for trial in some:
        verdict, why = judged(trial)
        yield Outcome(name, trial.kind, trial.detail, verdict, why)


def trials_of(
    name: str, target: Target | None, rng: random.Random, rounds: int
) -> Iterator[Trial]:
    """Those of a scene, or of a callable."""
    if target is None:
        return SCENES[name](rng)
    alone()
    return of_target(target, rng, rounds)


def of_target(
    target: Target, rng: random.Random, rounds: int
) -> Iterator[Trial]:
    """Every kind of hostility, for one callable."""
    for _ in range(rounds):
        case = case_of(target, rng)
        yield fed_trial(case)
        for kind in KINDS:
            yield from kind(case)
    if case.is_mechanism or target.of is not None:
        yield from of_transforms.compiled(case)


def case_of(target: Target, rng: random.Random) -> Case:
    """The callable with plain arguments, in sizes that are drawn."""
    sizes = draw_sizes(rng)
    make = partial(fed, target)
    return Case(make(sizes), make, sizes, rng)


def fed_trial(case: Case) -> Trial:
    """What it does with plain arguments, which it must not refuse."""
    call = case.call

    def run() -> object:
        try:
            return call.run()
        except Exception as error:
            raise KeyError(f"a recipe is needed: {error!r}") from error

    return case.trial("plain", "as is", call, partial(plain, call), run=run)


def fed(target: Target, sizes: Sizes) -> Call:
    """The callable with arguments in these sizes, always the same."""
    torch.manual_seed(sum(sizes.values()))
    recipe = next(
        (
            r
            for n, r in ARGUMENTS.items()
            if f".{target.name}".endswith(f".{n}")
        ),
        {},
    )
    module = None
    if target.of is not None:
        name = target.of.__name__
        method = ".".join(target.name.split(".")[-2:])
        if name not in MODULES:
            raise NoRecipeError(f"a module of class {name}")
        module = MODULES.get(method, MODULES[name])().double().eval()
    return Call(target, arguments(target, recipe, sizes), module)
