"""What a decoder does with its scores, seen while it takes one step.

However it is written, weights are made of a table of scores by a softmax, or
by PyTorch's own attention. Both can be watched: along which axis the softmax
runs, which keys are hidden from whom, and with which number. A chunk of five
tokens behind six others tells queries from keys, of which there are eleven;
and if it raises there, between which sizes, tells much of why.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from selfattn.doctor.deviations import handing_back, scores
from selfattn.doctor.exercise import name_of
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.exercises.positions import batch_axis
from selfattn.doctor.kinds.attention import mistakes as flags
from selfattn.doctor.kinds.cached_decoder import mistakes
from selfattn.doctor.kinds.cached_decoder.probes import moved, written
from selfattn.doctor.kinds.cached_decoder.score_tables import (
    Table,
    as_table,
    at_once,
    of_one_pass,
    seen_in,
)
from selfattn.doctor.patient import Patient

BEFORE, NEW = 6, 5  # tokens that are read, and those that are looked at
ALL = BEFORE + NEW
SHARES_OUT = ("softmax", "exp", "exp_", "sigmoid", "logsumexp", "exp2")
OWN = "scaled_dot_product_attention"


class Watched(TorchFunctionMode):
    """Sees each table of scores, and the call that raises first."""

    def __init__(self) -> None:
        """Nothing has been seen."""
        super().__init__()
        self.tables: list[Table] = []
        self.weights: list[Tensor] = []
        self.averaged = False  # whether weights were
        self.names: set[str] = set()
        self.shapes: list[tuple[int, ...]] = []
        self.raised: tuple[str, list[tuple[int, ...]]] | None = None

    def __torch_function__(
        self, call: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Make a call, and note what is to be noted of it."""
        kwargs = kwargs or {}
        name = getattr(call, "__name__", "")
        try:
            value = call(*args, **kwargs)
        except Exception:
            given = [*map(tuple, (x.shape for x in tensors_in(args)))]
            self.raised = self.raised or (name, given)
            raise
        self.names.add(name)
        if isinstance(value, Tensor) and name in ("einsum", "matmul", "bmm"):
            self.shapes.append(tuple(value.shape))
        if name == OWN:
            self.tables.append(as_table(args, kwargs))
        if name == "mean" and any(x is args[0] for x in self.weights):
            self.averaged = True
        if name == "softmax":
            self.weights.append(value)
            axis = kwargs.get("dim", args[1] if len(args) > 1 else -1)
            if isinstance(axis, int):
                self.tables.append(Table(args[0].detach().clone(), axis))
        return value


def tensors_in(given: Any) -> Iterator[Tensor]:
    """The tensors among some arguments, and in lists of them."""
    for one in given:
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, list | tuple):
            yield from tensors_in(one)


def step(patient: Patient, x: Tensor, before: int) -> tuple[Watched, Any]:
    """What is seen while it reads all behind the first so many tokens."""
    cache, watched, said = None, Watched(), None
    if before:
        _, cache = patient(x[:, :before], None)  # type: ignore[misc]
    try:
        with watched:
            said, _ = patient(x[:, before:], cache)  # type: ignore[misc]
    except Exception:  # which is seen
        if watched.raised is None:
            raise
    return watched, said


def in_its_steps(patient: Patient, x: Tensor) -> str:
    """What is wrong with the tables of scores, or with their sizes."""
    kept = x.clone()
    once, said = step(patient, x, 0)
    if not torch.equal(x, kept):
        x.copy_(kept)
        return name_of(handing_back.changed_in_place)
    if isinstance(said, Tensor) and is_turned(said, x):
        return name_of(handing_back.axes_in_another_order)
    if once.raised is not None:
        return of_order(once.raised[1])
    later, _ = step(patient, x, BEFORE)
    if any(is_alone(shape) for shape in later.shapes) and not any(
        map(is_a_table, later.shapes)
    ):
        return name_of(mistakes.cache_not_read)
    if later.raised is not None:
        if sizes_count_texts(patient, x, later.raised[1]):
            return name_of(batch_axis.positions_count_the_texts)
        return of_sizes(*later.raised)
    if counts_texts(patient, x):
        return name_of(batch_axis.positions_count_the_texts)
    shared = any(name in later.names for name in SHARES_OUT)
    own = OWN in later.names
    if not (shared or own) and any(map(is_a_table, later.shapes)):
        return name_of(flags.no_softmax)
    return of_tables(once.tables, later.tables)


def sizes_count_texts(
    patient: Patient, x: Tensor, shapes: list[tuple[int, ...]]
) -> bool:
    """Whether what does not fit has other sizes if there is one text alone.

    But for the axis of the texts itself.
    """
    alone, _ = step(patient, x[:1], BEFORE)
    if alone.raised is None or len(alone.raised[1]) != len(shapes):
        return alone.raised is None
    pairs = zip(shapes, alone.raised[1], strict=True)
    return any(
        a != b and (a, b) != (len(x), 1)
        for many, one in pairs
        for a, b in zip(many, one, strict=False)
    )


def is_turned(said: Tensor, x: Tensor) -> bool:
    """Whether texts, tokens and features came out in another order."""
    if not x.is_floating_point() or said.shape == x.shape:
        return False
    return sorted(said.shape) == sorted(x.shape)


def is_alone(shape: tuple[int, ...]) -> bool:
    """Whether there is a number for each two of the new tokens."""
    return shape[-2:] == (NEW, NEW)


def of_order(shapes: list[tuple[int, ...]]) -> str:
    """Whether a table does not begin with the texts, of which there are two.

    It is asked where it raised in one pass, so that something is amiss.
    """
    tables = [shape for shape in shapes if shape.count(ALL) == 2]
    if any(shape[0] != 2 and 2 in shape for shape in tables):
        return name_of(handing_back.axes_in_another_order)
    return ""


def counts_texts(patient: Patient, x: Tensor) -> bool:
    """Whether the first text goes on otherwise beside a second one.

    As it does where places are counted along the axis of the texts.
    """
    chunks = (BEFORE, NEW)
    for cuts in ((ALL,), chunks):
        both = written(patient, x, cuts)[:1]  # type: ignore[arg-type]
        alone = written(patient, x[:1], cuts)  # type: ignore[arg-type]
        if bool(moved(both, alone).any()):
            return cuts == chunks
    return False


def is_a_table(shape: tuple[int, ...]) -> bool:
    """Whether there is a number for each query and key."""
    return NEW in shape and ALL in shape


def of_sizes(name: str, shapes: list[tuple[int, ...]]) -> str:
    """Why sizes do not fit in a step that fit in one pass.

    Scores and mask may lie on one side each; or something begins or ends one
    token beside the others.
    """
    last = [shape[-2:] for shape in shapes if len(shape) > 1]
    if (ALL, NEW) in last and (NEW, ALL) in last:
        scores_first = last[0] == (ALL, NEW)
        return name_of(
            functions.weights_on_their_side
            if scores_first
            else functions.mask_on_its_side
        )
    sizes = {size for shape in shapes for size in shape}
    for right in (NEW, ALL):
        if right in sizes and sizes & {right - 1, right + 1}:
            return name_of(mistakes.new_words_at_wrong_distances)
    return ""


def of_tables(once: list[Table], later: list[Table]) -> str:
    """Along which axis weights sum to one, and which keys are hidden."""
    tables = [one for one in later if is_a_table(tuple(one.scores.shape))]
    for table in tables:
        if name := of_axis(table):
            return name
    whole = [seen_in(one) for one in at_once(once, ALL)]
    for one in tables:
        sees = seen_in(one.by_query(NEW, ALL))
        name = "" if sees is None else of_sight(sees, whole)
        if name:
            return name
    return of_one_pass(once, ALL)


def of_axis(table: Table) -> str:
    """Along which axis but that of the keys a softmax runs."""
    shape = table.scores.shape
    size = shape[table.axis]
    if size == ALL:
        return ""
    if size == NEW:
        on_its_side = table.axis % len(shape) == len(shape) - 1
        return name_of(
            functions.weights_on_their_side
            if on_its_side
            else functions.softmax_over_queries
        )
    return name_of(scores.softmax_over_heads) if len(shape) > 3 else ""


def of_sight(sees: Tensor, whole: list[Tensor | None]) -> str:
    """What is wrong with which keys are hidden in a step."""
    i, j = torch.arange(BEFORE, ALL)[:, None], torch.arange(ALL)
    if sees.equal(j <= i - BEFORE) or sees.equal(j < i - BEFORE):
        return name_of(triangles.first_on_first)
    causal = torch.ones(ALL, ALL, dtype=torch.bool).tril()
    right = any(one is not None and one.equal(causal) for one in whole)
    if right and (sees.equal(j <= i + 1) or sees.equal(j < i)):
        return name_of(mistakes.new_words_at_wrong_distances)
    if sees.equal(j >= i) or sees.equal(j > i):
        return name_of(triangles.upside_down)
    return ""
