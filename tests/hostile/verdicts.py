"""What came of a trial: right, refused clearly, or one of four failures."""

import ast
import math
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from types import GeneratorType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten

from hostile.callables import ROOT

RIGHT, REFUSED = "right", "refused clearly"
WRONG, ACCEPTED = "wrong", "accepted nonsense"
OBSCURE, HANG = "obscure error", "hang"
VERDICTS = (RIGHT, REFUSED, WRONG, ACCEPTED, OBSCURE, HANG)
GOOD = (RIGHT, REFUSED)
PATIENCE = 300  # seconds until a call hangs: any ends before, however slowly
# How far a result may be off, as a share of its largest number.
ROOM = {
    torch.float64: 1e-8,
    torch.float32: 2e-4,
    torch.float16: 2e-2,
    torch.bfloat16: 1.5e-1,
}


class Trial(NamedTuple):
    """One thing to do to a callable, and what may come of it."""

    kind: str  # "a shape", "a type", …
    detail: str  # what exactly is done
    run: Callable[[], Any]
    # What it must give, to be compared; None: nonsense, to be refused.
    expected: Callable[[], Any] | None
    watched: tuple[Tensor, ...] = ()  # arguments, which must stay as they are
    dtype: torch.dtype = torch.float64  # in which it is computed
    names: tuple[str, ...] = ()  # of the callable's parameters
    # What it would give, its numbers rounded at random by this seed.
    shaken: Callable[[int], Any] | None = None
    # What PyTorch's own gives, of which twice the error is allowed.
    rival: Callable[[], Any] | None = None


class Verdict(NamedTuple):
    """What came of a trial, with why."""

    verdict: str
    why: str


class Anything(NamedTuple):
    """An expectation that every result meets, as long as there is one."""


class TooLongError(BaseException):
    """A call has not ended within the limit."""


def judged(trial: Trial) -> Verdict:
    """Do it, and judge."""
    before = [x.detach().clone() for x in trial.watched]
    torch.manual_seed(0)
    try:
        with limited(PATIENCE):
            result = materialised(trial.run())
    except TooLongError:
        return Verdict(HANG, f"no answer after {PATIENCE} s")
    except Exception as error:
        return of_error(error, trial)
    for x, old in zip(trial.watched, before, strict=True):
        if not same_bits(x, old):
            return Verdict(WRONG, "an argument was modified")
    return of_result(result, trial)


def of_result(result: Any, trial: Trial) -> Verdict:
    """A result is right, wrong, or should not be."""
    if trial.expected is None:
        return Verdict(ACCEPTED, f"returned {shown(result)}")
    torch.manual_seed(0)
    try:
        wanted = materialised(trial.expected())
    except (ValueError, TypeError) as error:
        return Verdict(ACCEPTED, f"returned {shown(result)}; {error}")
    if isinstance(wanted, Anything):
        return Verdict(RIGHT, "")
    why = difference(result, wanted, trial.dtype)
    if why and trial.shaken and explained(result, wanted, trial.shaken):
        why = ""
    if why and trial.rival and within_twice(result, wanted, trial.rival()):
        why = ""
    return Verdict(WRONG, why) if why else Verdict(RIGHT, "")


def of_error(error: Exception, trial: Trial) -> Verdict:
    """An error is clear if the package raised it, and in words."""
    frames = list(traceback.walk_tb(error.__traceback__))
    frame, line = frames[-1]
    path = Path(frame.f_code.co_filename)
    where = f"{path.name}:{line}"
    said = str(error)
    told = f"{type(error).__name__} at {where}: {' '.join(said.split())[:160]}"
    once = isinstance(error, RuntimeError) and "once, not twice" in said
    by_type = isinstance(error, ValueError | TypeError) or once
    if not (by_type and raised_here(path, line)):
        return Verdict(OBSCURE, told)
    if "but" not in said.split() and "cannot" not in said and not once:
        return Verdict(OBSCURE, f"no rule and what was given: {told}")
    words = set(said.replace("=", " ").replace("`", " ").split())
    words |= {word.strip("(),.;:") for word in words}
    words |= {word.partition("[")[0] for word in words}  # cache[0]
    if not once and not words & synonyms(trial.names):
        return Verdict(OBSCURE, f"names no argument: {told}")
    return Verdict(REFUSED, told)


@cache
def synonyms(names: tuple[str, ...]) -> frozenset[str]:
    """The names of arguments, and what an error may call them."""
    words = {
        "q": ("queries",),
        "k": ("keys",),
        "v": ("values",),
        "x": ("tokens", "features", "context"),
        "kept": ("cache",),
        "source": ("tokens",),  # where an embedding asks, they are
        "tokens": ("target",),
    }
    also = [word for name in names for word in words.get(name, ())]
    of_all = ("queries", "keys", "values")
    return frozenset([*names, *also, *of_all])


@cache
def raises(path: Path) -> frozenset[int]:
    """The lines of a file that belong to a raise statement."""
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    )


def raised_here(path: Path, line: int) -> bool:
    """Whether an error comes from a raise statement of the package."""
    return path.is_relative_to(ROOT) and line in raises(path)


def materialised(result: Any) -> Any:
    """Of what has no end, the first two."""
    if isinstance(result, GeneratorType):
        return list(islice(result, 2))
    return result


def leaves(result: Any) -> list[Any]:
    """Every tensor, number and text in a result; a module's parameters."""
    if isinstance(result, nn.Module):
        weights = result.state_dict().values()
        return [getattr(w, "full_tensor", lambda w=w: w)() for w in weights]
    return tree_flatten(result)[0]


def difference(result: Any, wanted: Any, dtype: torch.dtype) -> str:
    """How a result differs from what is wanted; nothing if it does not."""
    mine, theirs = leaves(result), leaves(wanted)
    if len(mine) != len(theirs):
        return f"{len(mine)} results instead of {len(theirs)}"
    # What is zero but for rounding is held to the size of the others.
    least = 0.01 * max([0.0, *map(size_of, theirs)])
    both = zip(mine, theirs, strict=True)
    return next(
        (why for pair in both if (why := apart(*pair, dtype, least))), ""
    )


def explained(result: Any, wanted: Any, shaken: Callable[[int], Any]) -> bool:
    """Whether rounding what went in moves what comes out nearly as far.

    It does beside a kink: where a ReLU's input is nearly zero, a gradient
    takes one way or the other, in whatever implementation.
    """
    mine, theirs = leaves(result), leaves(wanted)
    if [*map(shape_of, mine)] != [*map(shape_of, theirs)]:
        return False
    others = [leaves(shaken(seed)) for seed in range(8)]
    return all(
        distance(x, y) <= 4 * max(distance(one[i], y) for one in others)
        for i, (x, y) in enumerate(zip(mine, theirs, strict=True))
    )


def within_twice(result: Any, wanted: Any, rival: Any) -> bool:
    """Whether of every result and gradient the largest error is at most twice
    that of PyTorch's own.
    """
    mine, theirs, others = leaves(result), leaves(wanted), leaves(rival)
    if [*map(shape_of, mine)] != [*map(shape_of, theirs)]:
        return False
    return all(
        distance(x, y) <= 2 * distance(other, y)
        for x, y, other in zip(mine, theirs, others, strict=True)
    )


def shape_of(x: Any) -> Any:
    """The shape of a tensor of floats; what is none is all its own."""
    floats = isinstance(x, Tensor) and x.is_floating_point()
    return tuple(x.shape) if floats else object()


def distance(x: Tensor, y: Tensor) -> float:
    """The largest difference of two tensors of one shape."""
    apart = (x.detach().double() - y.detach().double()).abs()
    return float(apart.max()) if apart.numel() else 0.0


def size_of(x: Any) -> float:
    """The largest finite number of a tensor."""
    if not isinstance(x, Tensor) or not x.is_floating_point() or x.is_meta:
        return 0.0
    finite = x.detach().double()[x.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def apart(x: Any, wanted: Any, dtype: torch.dtype, least: float) -> str:
    """How one result differs from another."""
    if isinstance(x, float) and isinstance(wanted, float):
        x, wanted = torch.tensor(x), torch.tensor(wanted)
    if not isinstance(x, Tensor) or not isinstance(wanted, Tensor):
        alike = type(x) is type(wanted) and (
            not isinstance(x, str | int | bool) or x == wanted
        )
        return "" if alike else f"{shown(x)} instead of {shown(wanted)}"
    if x.shape != wanted.shape:
        return f"{tuple(x.shape)} instead of {tuple(wanted.shape)}"
    if x.device.type == "meta" or wanted.device.type == "meta":
        return "" if x.device.type == "meta" else "is not on meta"
    if not wanted.is_floating_point():
        same = torch.equal(x.long(), wanted.long())
        return "" if same else f"{shown(x)} instead of {shown(wanted)}"
    pair = x.detach().double(), wanted.detach().double()
    return off_by(*pair, dtype, least)


def off_by(x: Tensor, wanted: Tensor, dtype: torch.dtype, least: float) -> str:
    """By how much, if by more than rounding explains."""
    finite = wanted.isfinite()
    fits = wanted.abs() <= largest(dtype)
    if not bool((x.isfinite() | ~(finite & fits)).all()):
        return "not finite where it should be"
    if bool((x.isfinite() & ~finite).any()):
        return "finite where it should not be"
    if not bool((x.isnan() == wanted.isnan())[~finite].all()):
        return "NaN and infinity are mixed up"
    both = finite & x.isfinite()
    if not bool(both.any()):
        return ""
    size = max(float(wanted[both].abs().max()), least, 1e-30)
    error = float((x - wanted)[both].abs().max()) / size
    limit = ROOM.get(dtype, ROOM[torch.float64])
    return f"off by {error:.2g} of the largest" if error > limit else ""


def largest(dtype: torch.dtype) -> float:
    """The largest number of a type; halves are compared in their own."""
    return torch.finfo(dtype).max / 2 if dtype.is_floating_point else math.inf


def same_bits(x: Tensor, old: Tensor) -> bool:
    """Whether a tensor is as it was."""
    if x.device.type == "meta" or x.layout != torch.strided:
        return True
    return x.shape == old.shape and torch.equal(
        x.detach().nan_to_num(7.25), old.nan_to_num(7.25)
    )


def shown(x: Any) -> str:
    """Something in few words."""
    if isinstance(x, Tensor):
        return f"{tuple(x.shape)} of {x.dtype}"
    return " ".join(repr(x).split())[:60]


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Interrupt what takes longer."""

    def stop(signum: int, frame: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
