"""What functions of attention are held to, by what is said of their formula.

The usual one is the package's own. Of those that scale, bend, compare or see
otherwise, and are meant to, the reference is the same design with that step
done so; a mistake is such a design with one step more done otherwise.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations import hiding, own_masks, scores, transposed
from selfattn.doctor.deviations.design import (
    Design,
    Deviation,
    attend,
    pairs,
    singles,
    without,
)
from selfattn.doctor.exercise import Exercise, Mistake, mistake_as
from selfattn.doctor.exercises.dot_product.attention import QKV_BATCH
from selfattn.doctor.kinds.attention import mistakes as bank
from selfattn.doctor.kinds.attention.first_keys import without_gaps
from selfattn.doctor.kinds.attention.formula import (
    Formula,
    claimed,
    design,
    keeps_a_mask,
)
from selfattn.doctor.kinds.attention.layouts import (
    INNER,
    TO,
    laid_back,
    laid_out,
)
from selfattn.doctor.kinds.attention.own_options import GROUP, GROUPS, of_own
from selfattn.doctor.kinds.attention.probes import (
    OPTIONAL,
    PROBES,
    needs,
    with_itself,
)
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import SIZES, Probe
from selfattn.dot_product import attention

ASKS = "softmax(q kᵀ / √d) v, under a mask or a causal flag"
REFERENCE = Exercise(
    "attention",
    asks=ASKS,
    solution=attention,
    probes=PROBES,
    by_name=("mask", "causal"),
    mistakes=bank.MISTAKES,
    optional=OPTIONAL,
    conventions=bank.CONVENTIONS,
)
LONGEST = 64  # tokens, to find where a window ends


def of(thing: Any, facts: Facts) -> Exercise:
    """The exercise for what is said of a function."""
    grouped = facts.get("grouped") or bool(facts.get("shared"))
    formula = Formula(
        facts["layout"],
        facts.get("scale"),
        facts.get("cap"),
        facts.get("scores") == "cosine",
        facts.get("bias"),
        facts.get("causal") is True,
        facts.get("alignment") == "first",
        facts.get("window"),
        facts.get("table"),
        "one" if facts.get("shared") else grouped,
    )
    made = of_formula(formula)
    return without_gaps(made) if facts.get("mask") == "lengths" else made


@lru_cache(maxsize=64)
def of_formula(formula: Formula) -> Exercise:
    """The reference, the probes and the mistakes for one formula."""
    base = design(formula)
    first = formula.from_first  # which matters to who keeps a mask alone
    usual = formula == Formula(formula.layout, from_first=first)

    def answer(change: Callable[[Design], Design]) -> Callable[..., Any]:
        return in_layout(change(base), formula.layout, bool(formula.grouped))

    known = ALWAYS_CAUSAL if formula.always else NEVER_CAUSAL
    if formula.window is not None or formula.table is not None:
        known = (*own_masks.of_table(base.past), *known)
    known = (*of_own(formula), *known)
    if formula.grouped:
        known = (*GROUPS, *known)
    exercise = replace(
        REFERENCE,
        deviations=singles(known, answer),
        second=lambda: pairs(known, answer, hiding.SAFE),
    )
    if usual:
        return exercise
    rules = conventions(answer)
    return replace(
        exercise,
        asks=f"{ASKS}, but for what was said",
        solution=answer(lambda one: one),
        probes=tuple(fitting(formula)),
        mistakes=tuple(m for of in rules.values() for m in of.values() if m),
        conventions=rules,
    )


NEVER_CAUSAL = (*scores.ALL, *hiding.ALL, *transposed.ALL)
ALWAYS_CAUSAL = (
    *scores.ALL,
    *hiding.FILLS,
    *hiding.MEANINGS,
    *hiding.TRIANGLES,
    *hiding.NO_FLAG,
    *transposed.ALL,
)


def in_layout(made: Design, layout: str, grouped: bool) -> Callable[..., Any]:
    """A design as a function of (…, n, d), computed in a layout's axes."""
    layout = layout.partition(TO)[0]
    axes = INNER.get(layout, layout)

    def answer(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
    ) -> Any:
        front = q.shape[:-2]
        if grouped and q.ndim > 3:
            times = q.shape[-3] // k.shape[-3]
            k, v = (x.repeat_interleave(times, -3) for x in (k, v))
        if mask is not None and axes != "any":
            mask = mask.expand(*front, q.shape[-2], k.shape[-2])
            mask = laid_out(mask, axes)
        q, k, v = (laid_out(x, axes) for x in (q, k, v))
        return laid_back(attend(made, q, k, v, mask, causal), axes, front)

    return answer


def conventions(
    answer: Callable[[Callable[[Design], Design]], Callable[..., Any]],
) -> dict[str, dict[Any, Mistake | None]]:
    """What a query gets that may see nothing, by a design of one's own."""
    fills = {
        "nan": (bank.empty_row_gives_nan, {"weigh": lambda s: s.softmax(-1)}),
        "average": (
            bank.empty_row_gives_the_average,
            {"hide": without(hiding.LOW)},
        ),
        "everything": (
            bank.ten_thousand_subtracted,
            {"hide": hiding.added(1e4)},
        ),
    }
    rules: dict[Any, Mistake | None] = {"zeros": None}
    for value, (known, steps) in fills.items():
        made = answer(Deviation(steps, known).of)
        rules[value] = mistake_as(known)(made)
    return {"empty_row": rules}


def fitting(formula: Formula) -> list[Probe]:
    """The probes that one may ask of such a formula."""
    found = []
    for probe in PROBES:
        if probe.convention == "alignment":
            continue
        if formula.always or keeps_a_mask(formula):
            if "causal" in probe.inputs or leaves_nothing(probe, formula):
                continue
            if "mask" in probe.inputs and not probe.convention:
                probe = with_itself(probe)
        if formula.grouped:
            probe = with_groups(probe, formula.grouped == "one")
        found.append(probe)
    return [*found, *beyond(formula)]


def leaves_nothing(probe: Probe, formula: Formula) -> bool:
    """Whether some query of it comes before all keys that it might see.

    Nobody who keeps a mask said what becomes of more queries than keys.
    """
    sizes = {**SIZES, **probe.sizes}
    seen = claimed(sizes["n_q"], sizes["n_k"], formula)
    return not bool(seen.any(dim=-1).all())


def beyond(formula: Formula) -> list[Probe]:
    """A text so long that the mask which is kept hides more than the future.

    In a short one, all that a window could hide is there.
    """
    if formula.window is None and formula.table is None:
        return []
    for n in range(5, LONGEST):
        seen = claimed(n, n, formula)
        early = seen.tril(-2)  # of what lies behind, is any of it hidden?
        if not torch.equal(early, torch.ones_like(early).tril(-2)):
            break
    sizes = {"n_q": n + 6, "n_k": n + 6, "d_v": SIZES["d"]}
    probe = Probe(
        "so it is in a text that is longer than what is seen", QKV_BATCH, sizes
    )
    return [replace(probe, needs=needs(probe), fixed=("n_q", "n_k"))]


def with_groups(probe: Probe, single: bool) -> Probe:
    """A probe with more heads of queries than of keys."""
    shape = str(probe.inputs["q"])
    if "heads" not in shape:
        return probe
    inputs = {**probe.inputs, "q": shape.replace("heads", "q_heads")}
    few = 1 if single else 3
    sizes = {**probe.sizes, "heads": few, "q_heads": GROUP * few}
    return replace(
        probe, inputs=inputs, sizes=sizes, fixed=("heads", "q_heads")
    )
