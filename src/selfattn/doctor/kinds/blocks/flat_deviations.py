"""How attention goes wrong whose maps lie flat in a block."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from selfattn.doctor.deviations import hiding, scores
from selfattn.doctor.deviations.design import Deviation
from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.multihead import attention as whole
from selfattn.doctor.exercises.multihead import split
from selfattn.doctor.kinds.blocks.flat_parts import Flat
from selfattn.doctor.kinds.layer.deviations import one_projection_for_two


@mistake
def no_output_projection():
    """The heads' outputs are side by side, and never mixed.

    Cause: What attention finds is not projected.
    Cure: Project it before it is added.
    Chapter: multihead
    """


@mistake
def queries_and_keys_exchanged():
    """Rows and columns of your scores are exchanged.

    Cause: The maps for queries and keys stand in each other's place.
    Cure: q @ k.mT, with q = W_q(x).
    Chapter: multihead
    """


def otherwise(change: Callable[[Flat], Flat], known: Any) -> Deviation:
    """Parts whose attention, if it lies flat, is another one."""

    def parts_of(parts: Any) -> Any:
        own = parts[0]
        if not isinstance(own, Flat):
            return parts
        return parts._replace(**{parts._fields[0]: change(own)})

    return Deviation({"parts": parts_of}, known)


def by_maps(order: tuple[int, ...], known: Any) -> Deviation:
    """Another order of the maps."""
    return otherwise(
        lambda own: own._replace(
            maps=tuple(own.maps[i] for i in order if i < len(own.maps))
        ),
        known,
    )


def by_heads(known: Any, **steps: Any) -> Deviation:
    """Another way to cut or merge the heads, or to end."""
    return otherwise(lambda own: own._replace(**steps), known)


def by_splits(how: Any, known: Any, which: str, **steps: Any) -> Deviation:
    """Another way to cut the heads of some of queries, keys and values."""

    def change(own: Flat) -> Flat:
        pairs = zip("qkv", own.splits, strict=True)
        splits = tuple(how if part in which else one for part, one in pairs)
        return own._replace(splits=splits, **steps)

    return otherwise(change, known)


def as_it_came(own: Flat) -> Flat:
    """Attention that takes its values as they are."""
    q, k, _, *out = own.maps
    return own._replace(maps=(q, k, torch.nn.Identity(), *out))


def by_step(one: Deviation) -> Deviation:
    """Another step of attention itself."""
    return otherwise(
        lambda own: own._replace(design=replace(own.design, **one.steps)),
        one.known,
    )


FLAT = (
    by_heads(whole.merged_without_transpose, merge=whole.view_merge),
    by_heads(
        split.every_nth_feature,
        merge=lambda y: y.movedim(-3, -1).flatten(-2),
    ),
    *(
        by_splits(how, known, which)
        for how, known in (
            (whole.view_split, whole.cut_without_transpose),
            (split.every_nth_feature, split.every_nth_feature),
        )
        for which in ("qkv", "q", "k", "v", "qk", "kv")
    ),
    by_splits(
        whole.view_split,
        whole.both_without_transpose,
        "qkv",
        merge=whole.view_merge,
    ),
    by_splits(
        lambda y, n: y.unflatten(-1, (n, -1)),
        whole.heads_attend_to_heads,
        "qkv",
        merge=lambda y: y.flatten(-2),
    ),
    otherwise(as_it_came, whole.values_not_projected),
    by_heads(whole.input_added, end=lambda output, x: x + output),
    by_maps((0, 1, 2), no_output_projection),
    by_maps((1, 0, 2, 3), queries_and_keys_exchanged),
    by_maps((0, 1, 1, 3), scores.keys_are_the_values),
    *(
        by_maps((*order, 3), one_projection_for_two)
        for order in ((0, 0, 2), (1, 1, 2), (0, 1, 0), (0, 2, 2))
    ),
    *(
        by_step(one)
        for one in (
            *scores.SCALES,
            *scores.ENTRANCES,
            *scores.SOFTMAXES,
            *scores.MIXES,
            *scores.PRECISION,
            *scores.DETACHED,
            *hiding.FILLS,
            *hiding.MEANINGS,
        )
    ),
)
