"""Hostile surroundings: what PyTorch was told before the call."""

import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_map

from hostile.feeding import Call
from hostile.recipes import MEASURES, RANDOM
from hostile.trials import Case, in_dtype, nothing_to_compare, with_gradients
from hostile.twins import twin_of
from hostile.verdicts import Trial, leaves


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Somebody has set another default."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def exact_algorithms() -> Iterator[None]:
    """Only those that give the same every time."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextmanager
def default_device() -> Iterator[None]:
    """Somebody has set a default that is not where the arguments are."""
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


Mode = Callable[[], AbstractContextManager[Any]]
MODES: dict[str, Mode] = {
    "inference mode": torch.inference_mode,
    "no gradients": torch.no_grad,
    "a default of float64": partial(default_dtype, torch.float64),
    "a default of bfloat16": partial(default_dtype, torch.bfloat16),
    "a default of float16": partial(default_dtype, torch.float16),
    "deterministic algorithms": exact_algorithms,
    "anomalies detected": torch.autograd.detect_anomaly,
}


def trials(case: Case) -> Iterator[Trial]:
    """The same results as without."""
    call = in_dtype(case.call, torch.float32)
    for name, mode in MODES.items():
        run = partial(taken, partial(run_in, mode, call))
        yield same(case, name, call, run)
    if case.call.tensors():
        run = partial(run_in, default_device, call)
        yield same(case, "a default device of meta", call, run)
        if gives_tensors(call):
            yield on_meta(case, call)
    for dtype in (torch.bfloat16, torch.float16):
        mode = partial(torch.autocast, "cpu", dtype)
        run = partial(taken, partial(graded_in, mode, call))
        trial = case.trial(
            "a mode",
            f"autocast to {dtype}",
            call,
            partial(with_gradients, call),
            run=run,
            dtype=torch.bfloat16,
        )
        twin = twin_of(call)
        rival = twin and partial(graded_in, mode, call, twin)
        yield trial._replace(rival=rival)
    if call.tensors():
        yield same(case, "tensors of inference", call, partial(born, call))
        yield same(case, "a class of tensors", call, partial(named, call))
        yield from elsewhere(case, call)
    if call.target.name not in (*RANDOM, *MEASURES):
        run = partial(in_threads, call)
        yield same(case, "threads", call, run, lambda: [call.run()] * 4)
        run = partial(beside_autocast, call)
        wanted = partial(alone_in_thread, call)
        yield same(case, "a thread with autocast", call, run, wanted)


def taken(run: Callable[[], Any]) -> Any:
    """What it gives; to refuse in a mode what is taken without is no answer,
    in whatever words.
    """
    try:
        return run()
    except (ValueError, TypeError) as error:
        raise KeyError(f"refused in this mode alone: {error!r}") from error


def gives_tensors(call: Call) -> bool:
    """Whether there is something that can be without numbers."""
    return any(isinstance(x, torch.Tensor) for x in leaves(call.run()))


def same(
    case: Case,
    name: str,
    call: Call,
    run: Callable[[], Any],
    wanted: Callable[[], Any] | None = None,
) -> Trial:
    """A mode that is to change nothing; what a module is made with, it may."""
    made = inspect.isclass(call.target.call)
    expected = nothing_to_compare if made else wanted or call.run
    return case.trial(
        "a mode", name, call, expected, run=run, dtype=torch.float32
    )


def run_in(mode: Mode, call: Call) -> Any:
    """Call it under a mode; what has no end begins there, too."""
    with mode():
        result = call.run()
        if hasattr(result, "__next__"):
            result = [next(result), next(result)]
    return result


def graded_in(
    mode: Mode, call: Call, run: Callable[[Call], Any] = Call.run
) -> Any:
    """Results under a mode, and gradients."""

    def under(inner: Call) -> Any:
        with mode():
            return run(inner)

    return with_gradients(call, under)


def born(call: Call) -> Any:
    """With arguments that were made in inference mode.

    PyTorch itself says that it cannot keep them for a way back.
    """
    with torch.inference_mode():
        made = {n: x.clone() for n, x in call.tensors().items()}
    with torch.no_grad():
        return call.having(**made).run()


class Named(torch.Tensor):
    """A tensor of somebody's own class."""


def named(call: Call) -> Any:
    """With arguments of such a class; what comes out may be of it, too."""
    made = {n: x.as_subclass(Named) for n, x in call.tensors().items()}
    return tree_map(plainly, call.having(**made).run())


def plainly(x: Any) -> Any:
    """Of PyTorch's own class."""
    return x.as_subclass(torch.Tensor) if isinstance(x, Named) else x


def elsewhere(case: Case, call: Call) -> Iterator[Trial]:
    """One argument is not where the others are."""
    tensors = {n: x for n, x in call.tensors().items() if x.ndim}
    learned = call.module is not None and [*call.module.parameters()]
    if len(tensors) + bool(learned) < 2:
        return
    for name, x in tensors.items():
        moved = {name: x.to("meta")}
        yield case.trial(
            "a place", f"{name} alone on meta", call.having(**moved), None
        )


def on_meta(case: Case, call: Call) -> Trial:
    """No numbers at all, only shapes."""

    def move(x: Any) -> Any:
        return x.to("meta") if isinstance(x, torch.Tensor) else x

    given = {n: tree_map(move, x) for n, x in call.given.items()}
    module = call.module
    if module is not None:
        module = convert_module(module)
    moved = call._replace(given=given, module=module)
    return case.trial("a mode", "on meta", moved, call.run)


def convert_module(module: torch.nn.Module) -> torch.nn.Module:
    """A copy without numbers."""
    import copy

    return copy.deepcopy(module).to("meta")


def beside_autocast(call: Call) -> list[Any]:
    """Some times, while it is called under autocast in another thread; and
    whether the one thread has the other's autocast then.
    """

    def under_autocast() -> None:
        for _ in range(4):
            with torch.autocast("cpu", torch.bfloat16):
                call.run()

    try:
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(under_autocast)
            found = [call.run() for _ in range(4)]
            other.exception()  # what autocast makes of it is tried elsewhere
        return [*found, torch.is_autocast_enabled("cpu")]
    finally:
        torch.set_autocast_enabled("cpu", False)


def alone_in_thread(call: Call) -> list[Any]:
    """The same without the other thread."""
    return [*[call.run()] * 4, False]


def in_threads(call: Call) -> list[Any]:
    """Four at once."""

    def run(_: int) -> Any:
        return call.run()

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(run, range(4)))
