"""Of all formulas of its own that a layer may have, the one that it has.

What is found in a module is a formula, and numbers tell whether it is the
module's: then it is held to numbers, as plain attention is. If it makes a
mistake as well, they are those of the formula and of that one deviation.
"""

import itertools
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.deviations import hiding, scores
from selfattn.doctor.deviations.design import Deviation, unchanged
from selfattn.doctor.kinds.attention.formula import Formula, design
from selfattn.doctor.kinds.layer import calling, deviations, probes
from selfattn.doctor.kinds.layer.between import Inner, found
from selfattn.doctor.kinds.layer.parts import Projections
from selfattn.doctor.kinds.layer.reference import Masks
from selfattn.doctor.kinds.layer.steps import USUAL_LAYER, Layer, layer_by
from selfattn.doctor.patient import Facts

# Formulas that are tried, and those beside which a mistake is looked for: of
# who is said to have one of its own, and of whom nothing is said.
MOST = {False: 240, True: 60}
FEW = {False: 12, True: 4}
SECONDS = 3.0  # of one thread, to look for it
NEAR = 1e-4
SAME = 1e-6  # but for rounding, where the same is summed in another order
UNSEEN = {*scores.PRECISION, *scores.DETACHED}  # in float32, forwards
KNOWN: Any = weakref.WeakKeyDictionary()


def fitted(
    module: nn.Module,
    facts: Facts,
    parts: Projections,
    formula: Formula,
    masks: Masks,
    cross: bool,
) -> Inner | None:
    """What is found in a module, if its numbers are of that; None if not.

    Args:
        module: the layer, as it is called.
        facts: how it is called.
        parts: its projections.
        formula: what was told of its formula.
        masks: what it hides by itself.
        cross: whether it looks at another sequence.
    """
    names = ("layout", "causal", "packed", "matrices", "n_heads")
    held = [facts.get(name) for name in (*names, "order", "free")]
    key = repr(held), formula, cross
    known = KNOWN.setdefault(module, {})
    if key not in known:
        try:
            with torch.no_grad():
                known[key] = look(module, facts, parts, formula, masks, cross)
        except Exception:  # its own parts fail; so will it where it is asked
            known[key] = None
    result: Inner | None = known[key]
    return result


def look(
    module: nn.Module,
    facts: Facts,
    parts: Projections,
    formula: Formula,
    masks: Masks,
    cross: bool,
) -> Inner | None:
    """The same, not yet known."""
    wide = parts.q.W.shape[0], parts.k.W.shape[0], cross
    given = [*probes.of_widths(*wide)[0].make().values()]
    call = calling.adapt(module, facts)
    said, x, context = call(*given), given[0], given[-1]
    free = bool(facts.get("free"))
    listed = found(module, parts, cross)
    options = possible(listed, tells_places(call, given), MOST[free])
    if free:  # nobody said that it has the usual scale
        options += [one.with_scale(1.0) for one in options if one.scores]

    def fits(made: Layer) -> bool:
        try:
            value = layer_by(made, parts, x, context, masks)
        except Exception:
            return False  # these steps do not go together
        return is_near(value, said)

    for one in options:
        if fits(based(formula, one)):
            return one
    claims = masks.claimed is not None
    causal = {"causal": bool(facts.get("causal")), "claims": claims}
    others = with_safe(deviations.of(causal, cross))
    return beside(options[: FEW[free]], others, formula, fits)


def with_safe(others: Iterable[Deviation]) -> Iterator[Deviation]:
    """Deviations; those of masks with each number that hides as well, too.

    Where a row is empty it shows which one that is.
    """
    for one in others:
        yield one
        if one.steps.keys() & {"past", "claims"}:
            for safe in hiding.SAFE:
                yield Deviation({**one.steps, **safe.steps}, one.known)


def possible(listed: Iterable[Inner], turns: bool, most: int) -> list[Inner]:
    """The likeliest; of what does not turn, none that would."""
    likely = (one for one in listed if turns or not one.turned)
    return [*itertools.islice(likely, most)]


def tells_places(call: Callable[..., Any], given: Sequence[Tensor]) -> bool:
    """Whether a query notices that two keys far from it change places.

    Whoever turns queries and keys does, at one end or, if a mask is wrong, at
    the other; and of who does not, no way to turn need be tried.
    """
    *before, seen = given
    last = seen.shape[-2] - 1
    one = call(*before, seen)
    for query, pair in (-1, [0, 1]), (0, [last, last - 1]):
        moved = seen.clone()
        moved[:, pair] = seen[:, pair[::-1]]
        other = call(*before, moved)
        if not (isinstance(one, Tensor) and isinstance(other, Tensor)):
            return True
        here = one[:, query], other[:, query]
        if not torch.allclose(*here, rtol=SAME, atol=SAME):
            return True
    return False


def beside(
    options: Iterable[Inner],
    others: Iterable[Deviation],
    formula: Formula,
    fits: Callable[[Layer], bool],
) -> Inner | None:
    """The formula of which it does but one thing otherwise."""
    listed = [one for one in others if one not in UNSEEN]
    end = time.thread_time() + SECONDS
    for option in options:
        base = based(formula, option)
        if time.thread_time() > end:
            return None
        if any(fits(other.of(base)) for other in listed):
            return option
    return None


def is_near(value: Tensor, said: Any) -> bool:
    """Whether two outputs are one, but for rounding."""
    return (
        isinstance(said, Tensor)
        and value.shape == said.shape
        and bool(value.isfinite().any())
        and torch.allclose(
            value.float(), said.float(), rtol=NEAR, atol=NEAR, equal_nan=True
        )
    )


def based(formula: Formula, inner: Inner | None) -> Layer:
    """A layer in the steps of a formula, and of what is found in it."""
    if inner is not None:
        formula = inner.of(formula)
    made = design(formula)
    names = ("compare", "scale", "bend")
    steps = {name: getattr(made, name) for name in names}
    if inner is not None:
        own = inner.steps.get("bend", unchanged)
        steps |= inner.steps | {"bend": lambda table: own(made.bend(table))}
    return replace(USUAL_LAYER, **steps)
