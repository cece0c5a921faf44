"""What is done otherwise in a layer: with projections, heads and padding."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

from torch import Tensor

from selfattn.doctor.deviations import hiding, scores
from selfattn.doctor.deviations.design import Deviation
from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.multihead import attention as whole
from selfattn.doctor.exercises.multihead import split
from selfattn.doctor.kinds.attention.own_options import (
    groups_in_another_order,
)
from selfattn.doctor.kinds.layer.mask_deviations import (
    CLAIMS,
    NOT_CAUSAL,
    PADDINGS,
)
from selfattn.doctor.kinds.layer.mistakes import heads
from selfattn.doctor.kinds.layer.steps import mixed
from selfattn.doctor.patient import Facts


@mistake
def parts_in_another_order():
    """Queries, keys and values are not what they were trained as.

    Cause: One matrix makes all three, and they are taken out of it in
        another order.
    Cure: The order in which they lie: q, k, v = fused.chunk(3, dim=-1).
    Chapter: multihead
    """


@mistake
def one_projection_for_two():
    """Two of queries, keys and values are the same.

    Cause: The projection of one is used for another, too.
    Cure: Each has its own.
    Chapter: multihead
    """


@mistake
def projection_not_used():
    """One of your projections makes no difference, and learns nothing.

    Cause: It is made, and not called: another stands in its place, or what
        it should project is taken as it is.
    Cure: q, k and v, each of its own projection.
    Chapter: multihead
    """


@mistake
def merged_in_the_other_order():
    """The heads' outputs are side by side in the wrong order.

    Cause: Features and heads, or the heads among themselves, are exchanged
        when heads are merged.
    Cure: output.transpose(1, 2).flatten(-2).
    Chapter: multihead
    """


@mistake
def axes_exchanged():
    """The shape is right, but heads, tokens and texts are mixed.

    Cause: Other axes are exchanged than those of tokens and heads.
    Cure: transpose(1, 2), of (batch, tokens, heads, features) and back.
    Chapter: multihead
    """


@mistake
def bias_not_scaled():
    """Right as long as the bias of the queries is zero, as at the start.

    Cause: x W is scaled before the bias is added.
    Cure: Scale the scores, or the whole of q.
    Chapter: multihead
    """


@mistake
def output_projection_transposed():
    """The output is projected by a matrix on its side.

    Cause: output W where the matrix was made for output Wᵀ, or the reverse.
    Cure: Call the projection, or F.linear(output, weight, bias).
    Chapter: multihead
    """


@mistake
def queries_of_the_context():
    """The queries come from the context.

    Cause: The projection of the queries is given the wrong one of two inputs.
    Cure: Queries from x, keys and values from the context.
    Chapter: multihead
    """


@mistake
def keys_of_x():
    """In cross-attention, keys come from x.

    Cause: The projection of the keys is given the wrong one of two inputs.
    Cure: Queries from x, keys and values from the context.
    Chapter: multihead
    """


@mistake
def values_of_x():
    """In cross-attention, values come from x.

    Cause: The projection of the values is given the wrong one of two inputs.
    Cure: Queries from x, keys and values from the context.
    Chapter: multihead
    """


@mistake
def cross_attention_to_itself():
    """What it says has nothing to do with the context.

    Cause: Keys and values come from x.
    Cure: Queries from x, keys and values from the context.
    Chapter: masks
    """


def by(q: str, k: str, v: str, inputs: str = "xyy") -> Callable[..., Any]:
    """Projections by other maps, of other inputs: x, or y for the context."""

    def project(parts: Any, x: Tensor, context: Tensor) -> Any:
        given = {"x": x, "y": context}
        maps = (getattr(parts, name) for name in (q, k, v))
        return tuple(
            one(given[name]) for one, name in zip(maps, inputs, strict=True)
        )

    return project


def bare(*names: str) -> Callable[..., Any]:
    """Projections of which some have lost their bias."""

    def project(parts: Any, x: Tensor, context: Tensor) -> Any:
        less = parts._replace(
            **{name: getattr(parts, name)._replace(b=None) for name in names}
        )
        return by("q", "k", "v")(less, x, context)

    return project


def on_their_side(*names: str) -> Callable[..., Any]:
    """Projections of which some are transposed."""

    def project(parts: Any, x: Tensor, context: Tensor) -> Any:
        turned = {
            name: getattr(parts, name)._replace(W=getattr(parts, name).W.mT)
            for name in names
        }
        return by("q", "k", "v")(parts._replace(**turned), x, context)

    return project


def scaled_before_its_bias(parts: Any, x: Tensor, context: Tensor) -> Any:
    """Projections in which q is scaled before its bias is added."""
    q, k, v = by("q", "k", "v")(parts, x, context)
    if parts.q.b is not None:
        d = parts.q.W.shape[-1] // parts.n_heads
        q = q + parts.q.b.to(q.dtype) * (d**0.5 - 1)
    return q, k, v


def unprojected(parts: Any, x: Tensor, context: Tensor) -> Any:
    """Projections without that of the values."""
    q, k, _ = by("q", "k", "v")(parts, x, context)
    return q, k, context


def no_transpose(y: Tensor, n_heads: int) -> Tensor:
    """Heads cut, and left behind the tokens."""
    return y.unflatten(-1, (n_heads, -1))


def splits(which: str, how: Any, known: Any) -> Deviation:
    """Another way to split some of q, k and v into heads."""
    return Deviation({f"split_{part}": how for part in which}, known)


def tiled(x: Tensor, times: int) -> Tensor:
    """All key heads, one after the other, again and again."""
    return x.repeat(1, times, *[1] * (x.ndim - 2))


def features_first(y: Tensor, x: Tensor) -> Tensor:
    """Merged by features, then heads."""
    return y.movedim(-3, -1).flatten(-2)


def heads_reversed(y: Tensor, x: Tensor) -> Tensor:
    """Merged with the heads from last to first."""
    return y.flip(-3).transpose(-3, -2).flatten(-2)


def sideways(y: Tensor, x: Tensor) -> Tensor:
    """Merged without exchanging any axes."""
    return y.flatten(-2)


def viewed(y: Tensor, x: Tensor) -> Tensor:
    """Merged by cutting what lies in memory."""
    return whole.view_merge(y)


def channels_first(y: Tensor, x: Tensor) -> Tensor:
    """Merged by cutting what lies in memory, as (batch, features, n)."""
    return y.reshape(len(y), -1, y.shape[-2]).mT


def cut_channels_first(y: Tensor, n_heads: int) -> Tensor:
    """Heads cut out of (batch, features, n) as if it were (…, n, features)."""
    return y.mT.reshape(len(y), n_heads, y.shape[-2], -1)


def no_out(parts: Any, merged: Tensor) -> Tensor:
    """The heads side by side, not projected."""
    return merged


def turned_out(parts: Any, merged: Tensor) -> Tensor:
    """Projected by the matrix on its side."""
    out = parts.out
    return merged if out is None else out._replace(W=out.W.mT)(merged)


def bare_out(parts: Any, merged: Tensor) -> Tensor:
    """Projected without the bias."""
    return mixed(
        parts
        if parts.out is None
        else parts._replace(out=parts.out._replace(b=None)),
        merged,
    )


MAPS = (
    Deviation(
        {"project": by("k", "q", "v")}, whole.queries_and_keys_exchanged
    ),
    Deviation({"project": by("q", "k", "k")}, heads.keys_are_the_values),
    Deviation({"project": by("q", "q", "v")}, scores.queries_as_keys),
    *(
        Deviation({"project": by(*order)}, parts_in_another_order)
        for order in permutations("qkv")
        if order not in (("q", "k", "v"), ("k", "q", "v"))
    ),
    *(
        Deviation({"project": by(*maps)}, one_projection_for_two)
        for maps in ("kkv", "qvv", "qkq", "vkv", "qqq", "kkk", "vvv")
    ),
    Deviation({"project": by("q", "k", "v", "yyy")}, queries_of_the_context),
    Deviation({"project": unprojected}, whole.values_not_projected),
    *(
        Deviation({"project": bare(*names)}, heads.biases_forgotten)
        for names in ("qkv", "q", "k", "v", "kv", "qk")
    ),
    *(
        Deviation(
            {"project": on_their_side(*names)},
            heads.matrices_of_the_input_transposed,
        )
        for names in ("qkv", "q", "k", "v", "kv", "qk")
    ),
    Deviation({"project": scaled_before_its_bias}, bias_not_scaled),
)
ACROSS = (
    Deviation(
        {"project": by("q", "k", "v", "xxx")}, cross_attention_to_itself
    ),
    Deviation({"project": by("q", "k", "v", "xxy")}, keys_of_x),
    Deviation({"project": by("q", "k", "v", "xyx")}, values_of_x),
)
PARTS = ("qkv", "q", "k", "v", "kv", "qk")
SPLITS = (
    *(splits(w, whole.view_split, whole.cut_without_transpose) for w in PARTS),
    *(
        splits(w, cut_channels_first, whole.cut_without_transpose)
        for w in PARTS
    ),
    *(
        splits(w, split.every_nth_feature, split.every_nth_feature)
        for w in PARTS
    ),
    *(
        splits(
            w, split.heads_from_last_to_first, scores.heads_in_another_order
        )
        for w in ("q", "k", "v", "kv", "qk")
    ),
    Deviation(
        {
            **dict.fromkeys(("split_q", "split_k", "split_v"), no_transpose),
            "merge": sideways,
        },
        whole.heads_attend_to_heads,
    ),
)


def in_order(axes: tuple[int, ...]) -> Callable[[Tensor, int], Tensor]:
    """A split whose axes, (batch, n, n_heads, d_head), are in an order."""
    return lambda y, n_heads: y.unflatten(-1, (n_heads, -1)).permute(axes)


def out_of_order(axes: tuple[int, ...]) -> Callable[..., Tensor]:
    """A merge of (batch, n_heads, n, d_head) in another order of axes."""
    return lambda y, x: y.permute(axes).reshape(*x.shape[:2], -1)


ALL_SPLITS = ("split_q", "split_k", "split_v")
ORDERS = (
    ((0, 1, 2, 3), whole.heads_attend_to_heads),
    ((1, 0, 2, 3), whole.heads_attend_to_heads),
    ((1, 2, 0, 3), heads.batch_and_tokens_exchanged),
    ((2, 1, 0, 3), heads.batch_and_tokens_exchanged),
    ((2, 0, 1, 3), axes_exchanged),
)
AXES = (
    *(
        Deviation(
            {
                **dict.fromkeys(ALL_SPLITS, in_order(axes)),
                "merge": out_of_order(last),
            },
            known,
        )
        for axes, known in ORDERS
        for last in ((0, 2, 1, 3), (0, 1, 2, 3), (2, 0, 1, 3), (1, 2, 0, 3))
    ),
    *(
        Deviation({"merge": out_of_order(axes)}, axes_exchanged)
        for axes in permutations(range(4))
        if axes not in ((0, 2, 1, 3), (0, 1, 2, 3), (0, 2, 3, 1))
    ),
)
GROUPS = tuple(
    Deviation(dict.fromkeys(steps, tiled), groups_in_another_order)
    for steps in (("repeat_k", "repeat_v"), ("repeat_k",), ("repeat_v",))
)
EXITS = (
    Deviation({"merge": viewed}, whole.merged_without_transpose),
    Deviation({"merge": channels_first}, whole.merged_without_transpose),
    Deviation({"merge": features_first}, merged_in_the_other_order),
    Deviation({"merge": heads_reversed}, merged_in_the_other_order),
    Deviation({"out": no_out}, whole.no_output_projection),
    Deviation({"out": turned_out}, output_projection_transposed),
    Deviation({"out": bare_out}, heads.biases_forgotten),
    Deviation({"end": lambda y, x: y + x}, whole.input_added),
)


COMMON = (
    *hiding.NO_FLAG,
    *MAPS,
    *SPLITS,
    *AXES,
    *GROUPS,
    *EXITS,
    *PADDINGS,
    *scores.ALL,
    *hiding.FILLS,
    *hiding.MEANINGS,
)


def of(facts: Facts, cross: bool) -> tuple[Deviation, ...]:
    """What a layer may do otherwise, of which some things are said."""
    if cross:
        return (*ACROSS, *COMMON)
    claims = CLAIMS if facts.get("claims") else ()
    if facts.get("causal"):
        return (NOT_CAUSAL, *COMMON, *claims, *hiding.TRIANGLES)
    return (*COMMON, *claims, *hiding.TRIANGLES, *hiding.ALWAYS)
