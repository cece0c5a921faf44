"""What an exercise is: a solution, probes, and a bank of named mistakes."""

import numbers
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from inspect import cleandoc
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.probes import Inputs, Probe


class UnusableError(Exception):
    """The answer is not the kind of thing that was asked for."""


@dataclass(frozen=True, eq=False)
class Mistake:
    """A wrong answer that has a name, and what to tell those who give it."""

    name: str
    answer: Any
    symptom: str
    cause: str
    cure: str
    chapter: str = ""  # of the book, where it is explained, or page#section
    thread: str = ""  # where it was reported of code that people use
    also: "Mistake | None" = None  # the second one, of two that were made

    def __str__(self) -> str:
        """The three sentences, one after the other."""
        return " ".join(filter(None, (self.symptom, self.cause, self.cure)))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Make the mistake."""
        return self.answer(*arguments, **named)


def mistake(function: Callable[..., object]) -> Mistake:
    """A wrong answer as a mistake. For use as a decorator.

    Its name is the function's; its docstring holds symptom, cause and cure.
    """
    return described(function)


def mistake_as(
    known: Mistake | Callable[..., object],
) -> Callable[[Callable[..., object]], Mistake]:
    """A wrong answer that is a known mistake in another place.

    It has the name and the words of ``known``, which is written out
    elsewhere, so that one slip has one name and one cure.
    """
    return lambda answer: replace(described(known), answer=answer)


def unspoken(known: Mistake | Callable[..., object]) -> Mistake:
    """A mistake that is told by what is seen, and has no numbers here."""
    return mistake_as(known)(lambda *given, **named: None)


def mistaken_value(function: Callable[[], object]) -> Mistake:
    """What a function returns, as a mistake of a prediction. A decorator."""
    return replace(described(function), answer=function())


def described(known: Mistake | Callable[..., object]) -> Mistake:
    """The mistake that a function is, by its name and its docstring."""
    if isinstance(known, Mistake):
        return known
    words: dict[str, Any] = {"chapter": chapter_of(known.__module__)}
    words |= read_docstring(known.__doc__ or "")
    return Mistake(known.__name__.replace("_", " "), known, **words)


def name_of(known: Mistake | Callable[..., object]) -> str:
    """What a mistake is called, wherever it is made again."""
    return described(known).name


@dataclass(frozen=True, eq=False)
class Exercise:
    """One exercise. See the package's docstring for how to write one.

    ``optional`` tells, in words, what probes may need and a right answer
    may lack. ``conventions`` tells of each fact by which more than one
    outcome is right which there are: the first is the solution's, and every
    other comes with the mistake that does so. ``deviations`` are wrong
    answers besides, for those of whom no mistake of the bank tells all; a
    ``second`` look, at two of them at once, is taken when no single one does.
    ``signs`` tell the name of what gives itself away otherwise; ``inside``
    hands over an exercise for a part of an answer, and that part. Mistakes
    that are ``unsure`` agree with too many: they are named if a sign says so.
    A ``hint`` is like a sign, and asked for where no numbers tell a name.
    """

    name: str  # "<chapter>/<name>"
    asks: str  # what the answer shall be, in a few words
    solution: Any
    probes: tuple[Probe, ...]
    by_name: tuple[str, ...] = ()  # inputs that are passed by keyword
    use: Callable[[Any, Inputs], object] | None = None  # calls it when None
    predicted: bool = False  # the answer is a value, not a function
    mistakes: tuple[Mistake, ...] = ()
    optional: Mapping[str, str] = field(default_factory=dict)
    conventions: Mapping[str, Mapping[Any, Mistake | None]] = field(
        default_factory=dict
    )
    deviations: tuple[Mistake, ...] = ()
    second: Callable[[], Iterable[Mistake]] = tuple
    signs: Callable[[Any], str] | None = None
    inside: Callable[[Any], "tuple[Exercise, Any] | None"] | None = None
    unsure: tuple[str, ...] = ()
    hint: Callable[[Any], str] | None = None

    def adapted(self, adapt: Callable[[Any], Any]) -> "Exercise":
        """The same exercise, with all its answers called in another way."""
        known = {
            old: replace(old, answer=adapt(old.answer))
            for old in self.mistakes
        }
        return replace(
            self,
            solution=adapt(self.solution),
            mistakes=tuple(known.values()),
            deviations=tuple(
                replace(one, answer=adapt(one.answer))
                for one in self.deviations
            ),
            second=lambda: (
                replace(one, answer=adapt(one.answer)) for one in self.second()
            ),
            conventions={
                fact: {
                    value: rule and known[rule]
                    for value, rule in outcomes.items()
                }
                for fact, outcomes in self.conventions.items()
            },
        )

    def run(self, answer: Any, inputs: Inputs) -> object:
        """Put the inputs to an answer, and return what comes back."""
        if answer is None or answer is ... or answer is NotImplemented:
            return None
        if self.use is not None:
            return self.use(answer, inputs)
        if not callable(answer):
            raise UnusableError(
                f"A function is asked for, but this is {describe(answer)}: "
                "hand over the function itself, without calling it."
            )
        by_name = {n: x for n, x in inputs.items() if n in self.by_name}
        in_order = [x for n, x in inputs.items() if n not in self.by_name]
        return answer(*in_order, **by_name)


def prediction(
    name: str,
    asks: str,
    solution: Any,
    mistakes: tuple[Mistake, ...] = (),
    tolerance: float = 0.005,
) -> Exercise:
    """An exercise whose answer is a number, a list of numbers or a word.

    ``tolerance`` is absolute: by default half of the second decimal, as who
    computes on paper rounds.
    """
    return Exercise(
        name,
        asks,
        solution,
        probes=(Probe(asks, {}, tolerance=tolerance),),
        use=read_prediction,
        predicted=True,
        mistakes=mistakes,
    )


def read_prediction(answer: Any, inputs: Inputs) -> object:
    """A predicted value in the form in which it is compared."""
    if isinstance(answer, str):
        return answer.strip().casefold()
    try:
        # ndarrays, tensors and nested lists of either
        value = torch.as_tensor(in_floats(answer)).detach().cpu()
        if value.is_complex():
            raise TypeError("half of it would be lost")
        return value.to(torch.float64)
    except Exception:
        raise UnusableError(
            "A number, a list of numbers or a word is asked for, but this is "
            f"{describe(answer)}."
        ) from None


def in_floats(answer: Any) -> Any:
    """The same, with floats for the numbers that PyTorch does not know.

    >>> from fractions import Fraction
    >>> in_floats([1, (Fraction(1, 2), Decimal("0.25"))])
    [1, [0.5, 0.25]]
    """
    if isinstance(answer, list | tuple):
        return [in_floats(one) for one in answer]
    exact = isinstance(answer, numbers.Rational | Decimal)
    return float(answer) if exact and not isinstance(answer, int) else answer


def check_docstrings() -> None:
    """Raise if Python has thrown away what the doctor has to say."""
    if sys.flags.optimize > 1:
        raise ValueError(
            "what the doctor says is written in docstrings, but Python was "
            "told to leave them out, by -OO or PYTHONOPTIMIZE=2"
        )


def read_docstring(text: str) -> dict[str, str]:
    r"""Split a mistake's docstring into what a `Mistake` has to say.

    >>> read_docstring("It is wrong.\n\nCause: A slip.\nCure: Care.")
    {'symptom': 'It is wrong.', 'cause': 'A slip.', 'cure': 'Care.'}
    """
    heads = ("symptom", "cause", "cure", "chapter", "thread")
    parts = dict.fromkeys(heads, "")
    part = "symptom"
    for line in cleandoc(text).splitlines():
        head, colon, rest = line.partition(":")
        if colon and head.lower() in parts:
            part, line = head.lower(), rest
        parts[part] = f"{parts[part]} {line.strip()}".strip()
    optional = heads[3:]
    return {k: v for k, v in parts.items() if v or k not in optional}


def chapter_of(module: str) -> str:
    """The chapter whose exercise a module holds, or nothing.

    >>> chapter_of("selfattn.doctor.exercises.masks.causal")
    'masks'
    """
    _, _, rest = module.partition(".exercises.")
    return rest.partition(".")[0]


def describe(thing: object) -> str:
    """A few words for what something is, without its numbers.

    >>> describe((torch.zeros(2, 3), None))
    'a tuple (a tensor (2, 3), None)'
    """
    if thing is None:
        return "None"
    if isinstance(thing, Tensor):
        return f"a tensor {tuple(thing.shape)}"
    if isinstance(thing, (tuple, list)) and len(thing) <= 4:
        inside = ", ".join(describe(one) for one in thing)
        return f"a {type(thing).__name__} ({inside})"
    if isinstance(thing, str):
        return "a text"
    kind = type(thing).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
