"""What an answer did on a probe: value, error, gradients, changed inputs."""

import contextlib
import functools
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

import torch
from torch import Tensor

from selfattn.doctor.engine.modes import modes_kept
from selfattn.doctor.engine.uncalled import refused_arguments
from selfattn.doctor.exercise import Exercise, UnusableError
from selfattn.doctor.patient import Facts, Patient
from selfattn.doctor.probes import Inputs, Probe, numbers

NONE: Facts = {}


class OwnTroubleError(Exception):
    """The doctor cannot make what it examines with."""

    def __init__(self, what: str, error: Exception, facts: Facts = NONE):
        """Say what it is, what is raised instead, and where that lies."""
        super().__init__(
            f"{trouble_with(facts)}: to make {what} raises "
            f"{in_words(error)}. Is a fact, or the thing, not what its kind "
            "takes?"
        )


def trouble_with(facts: Facts) -> str:
    """Where the trouble lies, if none can compute what would be right.

    Where a function was told, that is part of it.
    """
    told = " or ".join(f"{n}=…" for n, fact in facts.items() if callable(fact))
    if told:
        return f"The trouble lies in {told}, as you told it"
    return "The trouble is the doctor's own"


@dataclass(eq=False)
class Outcome:
    """All that an answer did on one probe; two of them are never one."""

    value: object = None
    error: str | None = None  # what it raised, in words
    stub: bool = False  # it said, in one way or other, "not yet"
    unusable: bool = False  # there is no way to call it as asked
    uncalled: bool = False  # Python refused what it was handed
    modified: tuple[str, ...] = ()  # inputs that are not what they were
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    gradient_error: str | None = None

    @functools.cached_property
    def forwards(self) -> "Outcome":
        """The same without gradients; asked again, the very same."""
        return replace(self, gradients={}, gradient_error=None)


def observe(
    exercise: Exercise, answer: Any, probe: Probe, **smaller: int
) -> Outcome:
    """Run an answer on a probe. Whatever it does, this does not raise.

    Raises:
        MemoryError: if Python has no memory left: that tells of the limit,
            and not of the answer.
        OwnTroubleError: if there is no such input to run it on.
    """
    try:
        inputs, untouched = probe.make(**smaller), pristine(probe, **smaller)
    except Exception as error:
        raise OwnTroubleError("an input", error) from error
    outcome = Outcome()
    try:
        with undisturbed():
            outcome.value = run(exercise, answer, probe, inputs)
        outcome.stub = is_stub(outcome.value)
    except (Exception, SystemExit) as error:
        outcome.error = of_an_answer(error)
        outcome.stub = isinstance(error, NotImplementedError)
        outcome.unusable = isinstance(error, UnusableError)
        outcome.uncalled = refused_arguments(answer, error)
    outcome.modified = tuple(
        name for name in untouched if not alike(inputs[name], untouched[name])
    )
    if probe.gradient and differentiable(outcome.value):
        try:
            with undisturbed():
                fresh = probe.make(**smaller)
                outcome.gradients = gradients(exercise, answer, probe, fresh)
        except (Exception, SystemExit) as error:
            outcome.gradient_error = of_an_answer(error)
    return outcome


@functools.lru_cache(maxsize=2000)
def pristine(probe: Probe, **smaller: int) -> Inputs:
    """The inputs of a probe, to compare with; nobody is handed them."""
    return probe.make(**smaller)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Keep what an answer prints, warns and draws at random to itself."""
    with (
        torch.random.fork_rng(devices=[]),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        modes_kept(),
    ):
        warnings.simplefilter("ignore")
        # torch.manual_seed would seed every device that there might be.
        torch.default_generator.manual_seed(0)
        yield


def run(
    exercise: Exercise, answer: Any, probe: Probe, inputs: Inputs
) -> object:
    """Put the inputs to an answer, as its exercise or the probe does."""
    if isinstance(answer, Patient):
        answer.watch(probe.claim)
    if probe.experiment is None:
        return exercise.run(answer, inputs)
    return probe.experiment(answer, inputs)


def gradients(
    exercise: Exercise, answer: Any, probe: Probe, inputs: Inputs
) -> dict[str, Tensor | None]:
    """Gradients of a weighted sum of the output, by the inputs' names."""
    leaves = {
        name: x.requires_grad_()
        for name, x in inputs.items()
        if differentiable(x)
    }
    value = run(exercise, answer, probe, inputs)
    if not isinstance(value, Tensor) or not value.requires_grad:
        return dict.fromkeys(leaves)
    # A plain sum would not do: the gradient of weights that sum to one is 0.
    total = (value * numbers(*value.shape, seed=9, dtype=value.dtype)).sum()
    found = torch.autograd.grad(
        total, list(leaves.values()), allow_unused=True
    )
    return dict(zip(leaves, found, strict=True))


def is_stub(value: object) -> bool:
    """Whether an answer, or what it returns, is a gap that was left open."""
    return value is None or value is ... or value is NotImplemented


def differentiable(x: object) -> TypeGuard[Tensor]:
    """Whether something is a tensor that can have a gradient."""
    return isinstance(x, Tensor) and x.is_floating_point()


def alike(a: object, b: object) -> bool:
    """Whether two things are the same, to the last bit."""
    try:
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            if a.shape != b.shape or a.dtype != b.dtype:
                return False
            if torch.equal(a, b):  # quick, but no NaN is another's equal
                return True
            return bool(((a == b) | (a != a) & (b != b)).all())
        return a is b or bool(a == b)
    except Exception:
        return False


def of_an_answer(error: BaseException) -> str:
    """An error of an answer in words; one of Python without memory is none."""
    if isinstance(error, MemoryError):
        raise error
    return in_words(error)


def in_words(error: BaseException) -> str:
    """An error in one line: its type and what it says."""
    if isinstance(error, UnusableError):
        return str(error)
    try:
        lines = str(error).strip().splitlines() or [""]
    except BaseException:  # its words are wrong, too
        lines = [""]
    words = f"{type(error).__name__}: {lines[0][:200]}".rstrip(": .")
    # What no terminal and no encoding takes, such as an escape, is not sent.
    return "".join(one if one.isprintable() else "\ufffd" for one in words)
