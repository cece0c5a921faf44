"""All that is asked of a whole model, and the report."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from selfattn.doctor.copying import copy_of
from selfattn.doctor.engine.outcome import in_words, undisturbed
from selfattn.doctor.engine.readings import title
from selfattn.doctor.exercise import Mistake
from selfattn.doctor.kind import UnclearError
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Difference, Finding, Report
from selfattn.doctor.whole import learning, seeing, writing
from selfattn.doctor.whole.calling import Whole, read, some_ids, stirred
from selfattn.doctor.whole.inside import of_layers
from selfattn.doctor.whole.seeing import Fault, NotAskedError

Look = Callable[[Whole], Fault | None]


class Question(NamedTuple):
    """What is asked: a claim, a few words for it, and how it is looked at."""

    claim: str
    words: str
    look: Look
    reading: bool = False  # whether it is about the text that is read


def of(look: Look, words: str, reading: bool = False) -> Question:
    """A question whose claim is the first line of what looks."""
    claim = (look.__doc__ or "").splitlines()[0].rstrip(".")
    return Question(claim[:1].lower() + claim[1:], words, look, reading)


FIRST = (
    of(seeing.finite, "numbers"),
    of(seeing.again, "two calls"),
    of(seeing.alone, "a batch"),
)
WRITES = (
    of(seeing.future, "the future"),
    of(seeing.past, "the past"),
    of(writing.cached, "a cache"),
    of(writing.chunked, "chunks with a cache"),
    of(writing.beams, "reordered beams"),
)
PADDED = (
    (seeing.padding, "what stands in padding"),
    (seeing.behind, "padding behind"),
    (seeing.before, "padding in front"),
)
LAST = (
    of(seeing.order, "the order"),
    of(learning.lengths, "lengths"),
    of(learning.beyond, "lengths beyond the limit"),
    of(learning.precision, "lower precision"),
    of(learning.training, "dropout"),
    of(learning.gradients, "gradients"),
    of(learning.tied, "tied weights"),
)
QUESTIONS = {
    "language-model": (*FIRST, *WRITES, *(of(*p) for p in PADDED), *LAST),
    "encoder": (
        *FIRST,
        of(seeing.both_sides, "both sides"),
        *(of(*p) for p in PADDED),
        *LAST,
    ),
    "encoder-decoder": (
        *FIRST,
        of(seeing.source, "the source"),
        *WRITES,
        *(of(*p, reading=True) for p in PADDED),
        *LAST,
    ),
}


def asked(
    whole: Whole, watch: Callable[[str], object], gone: dict[str, str]
) -> Iterator[tuple[Question, Fault | None]]:
    """Each question that could be asked, and what was wrong, if anything.

    What could not be asked is put into ``gone``, with the reason.
    """
    for question in QUESTIONS[whole.kind]:
        watch(question.claim)
        one = replace(whole, source=None) if question.reading else whole
        try:
            with undisturbed():
                fault = question.look(one)
                if fault is not None and not holds(question.look, one):
                    fault = None
                yield question, fault
        except NotAskedError as why:
            gone[question.words] = str(why)
        except UnclearError:
            raise
        except Exception as error:
            yield question, Fault(f"It raises {in_words(error)}.")


def holds(look: Look, whole: Whole) -> bool:
    """Whether what is wrong in float64 is wrong in float32, too.

    A model that was written for float32 may fail in float64 alone: where its
    softmax runs in float32, float64's lowest number becomes -inf there, and a
    row of padding that it hides is NaN.
    """
    of_types = getattr(learning, look.__name__, None) is look  # it asks itself
    if whole.fresh is None or whole.dtype == torch.float32 or of_types:
        return True
    narrow = whole.of(stirred(whole.fresh, torch.float32))
    try:
        return look(narrow) is not None
    except Exception:
        return True  # nor does it say anything better there


def ready(
    thing: Any,
    facts: Facts,
    kind: str,
    dtype: torch.dtype = torch.float64,
) -> Whole:
    """The model as it is asked: a copy in float64, with a text to read."""
    whole = read(thing, facts, kind)
    made = replace(
        whole, model=stirred(thing, dtype), fresh=thing, dtype=dtype
    )
    if made.reads:
        return replace(made, source=some_ids(made, 1, 6, seed=5))
    return made


def examine_whole(
    thing: Any, kind: str, facts: Facts, watch: Callable[[str], object]
) -> Report:
    """What is wrong with a whole model, and with the attention inside."""
    found = Report(kind, 0, patient=title(thing))
    try:
        whole = answering(thing, facts, kind)
    except UnclearError as unclear:
        return found.with_(question=str(unclear))
    except Exception as error:
        words = f"Called with token numbers, it raises {in_words(error)}."
        return found.with_(question=f"{words} Say call=… or n_tokens=….")
    return answered(whole, thing, found, watch)


def answering(thing: Any, facts: Facts, kind: str) -> Whole:
    """The model in the first number type in which it says something."""
    whole = ready(thing, facts, kind)
    some = some_ids(whole, 2, 3)
    try:
        seeing.said(whole, some)
    except UnclearError:
        raise
    except Exception:  # its kernels may have no float64
        whole = ready(thing, facts, kind, torch.float32)
        seeing.said(whole, some)
    return whole


def answered(
    whole: Whole, thing: Any, found: Report, watch: Callable[[str], object]
) -> Report:
    """The report on a model that can be called."""
    gone: dict[str, str] = {}
    told = list(asked(whole, watch, gone))
    faults = [(q, fault) for q, fault in told if fault is not None]
    layers = {}
    if whole.facts.get("inside", not faults):
        watch("the attention inside is well")
        layers = of_layers(whole, copy_of(thing).eval())
    findings = [finding(q.claim, fault.words) for q, fault in faults]
    findings += [
        finding(f"the attention in {name} is well", verdict.words)
        for name, verdict in layers.items()
        if verdict.words.startswith("ill")
    ]
    named = [fault.mistake for _, fault in faults]
    named += [verdict.mistake for verdict in layers.values()]
    return found.with_(
        probes=len(told) + len(layers),
        findings=tuple(findings),
        mistake=first(named) if findings else None,
        not_asked=gone,
        inside={name: verdict.words for name, verdict in layers.items()},
    )


def finding(claim: str, words: str) -> Finding:
    """A claim that does not hold, and how."""
    return Finding(Probe(claim, {}), Difference("value", words))


def first(named: list[Mistake | None]) -> Mistake | None:
    """The first mistake; what it brings along is not told."""
    return next((one for one in named if one is not None), None)
