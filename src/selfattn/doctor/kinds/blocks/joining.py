"""How sublayers are joined otherwise: each at its place, by its own norm."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from selfattn.doctor.deviations import hiding
from selfattn.doctor.deviations.design import Deviation
from selfattn.doctor.exercise import mistake
from selfattn.doctor.kinds.blocks.decoder import mistakes as decoder
from selfattn.doctor.kinds.blocks.encoder import mistakes as encoder
from selfattn.doctor.kinds.blocks.flat_deviations import FLAT
from selfattn.doctor.kinds.blocks.scaling import unscaled
from selfattn.doctor.kinds.blocks.sublayers import add, alone_in_place

Join = Callable[..., Tensor]  # of x, the sublayer, its norm, all norms, pre


@dataclass(frozen=True)
class Plan:
    """How each of up to three sublayers is joined, and in which order."""

    first: Join
    second: Join
    third: Join
    order: tuple[int, ...]
    apart: bool = False  # the second does not see what the first brought
    mask: Callable[[Any], Any] = lambda mask: mask
    parts: Callable[[Any], Any] = lambda parts: parts


@mistake
def residual_subtracted():
    """What a sublayer says is taken off, where it should be added.

    Cause: x - sublayer(x).
    Cure: x + sublayer(x).
    Chapter: layers
    """


@mistake
def no_attention():
    """A sublayer is missing: tokens do not look at each other.

    Cause: What attention says is not added.
    Cure: x + attention(x).
    Chapter: layers
    """


@mistake
def no_residual():
    """Deep stacks do not train, and their tokens become alike.

    Cause: Each sublayer replaces x; nothing is added.
    Cure: x + … around every sublayer.
    Chapter: layers
    """


@mistake
def no_residual_around_the_attention():
    """A token forgets itself: it keeps only what the others told it.

    Cause: x = attention(…) without x + .
    Cure: x + attention(…).
    Chapter: layers#add-a-path-past-the-layer
    """


@mistake
def no_residual_around_the_feed_forward():
    """What attention brought is gone.

    Cause: x = feed_forward(…) without x + .
    Cure: x + feed_forward(…).
    Chapter: layers#add-a-path-past-the-layer
    """


@mistake
def no_feed_forward():
    """Attention averages the values of tokens; none is worked on by itself.

    Cause: The last sublayer is missing.
    Cure: Add it, with its own norm.
    Chapter: layers
    """


@mistake
def norm_on_the_path():
    """There is no clear path: a sublayer normalises what it passes on.

    Cause: x = norm(x), and then x + sublayer(x): the residual is taken after
        the norm.
    Cure: Keep x, and normalise only what goes into the sublayer.
    Chapter: layers
    """


@mistake
def the_norm_on_the_other_side():
    """It trains otherwise: deep stacks learn more often with the norms before.

    Cause: Pre-norm, x + sublayer(norm(x)), and post-norm,
        norm(x + sublayer(x)), are exchanged.
    Cure: See which of the two your weights were trained for.
    Chapter: layers
    """


@mistake
def norm_before_and_behind():
    """A norm is applied twice.

    Cause: norm(x + sublayer(norm(x))), or norm(norm(x)).
    Cure: Once.
    Chapter: layers
    """


@mistake
def no_norm():
    """Activations grow from block to block.

    Cause: A norm was made, but it is not called, or its output not used.
    Cure: One norm for each sublayer.
    Chapter: layers
    """


@mistake
def norms_exchanged():
    """Right at the start, when all norms are alike, and wrong once trained.

    Cause: A norm does not stand at the sublayer that it was trained with.
    Cure: In the order of the sublayers.
    Chapter: layers
    """


@mistake
def sublayers_exchanged():
    """Right in shape; but two sublayers come in another order.

    Cause: The lines are exchanged.
    Cure: Attention to itself, then to the context, then the network.
    Chapter: layers
    """


@mistake
def side_by_side():
    """The second sublayer does not see what the first one found.

    Cause: Both are given the block's input, and their outputs are added.
    Cure: One after the other; or know that you build a parallel block.
    Chapter: layers
    """


@mistake
def network_without_a_bend():
    """Two linear maps in a row are one.

    Cause: Between them, there is no relu, gelu or the like.
    Cure: last(torch.relu(first(x))).
    Chapter: layers
    """


@mistake
def scale_not_used():
    """What your blocks learn to multiply their sublayers by does nothing.

    Cause: The numbers are made, and what the sublayers say is added as it is.
    Cure: x + scale * sublayer(…).
    Chapter: layers
    """


@mistake
def mask_not_passed_on():
    """Right as long as nothing is hidden; then the mask makes no difference.

    Cause: The block takes a mask and does not hand it on.
    Cure: attention(x, mask=mask).
    Chapter: masks
    """


def usual(x, layer, norm, norms, pre):
    """As it should be."""
    return add(x, layer, norm, pre)


def alone(x, layer, norm, norms, pre):
    """Without the path past it."""
    return alone_in_place(pre, x, layer, norm)


def left_out(x, layer, norm, norms, pre):
    """Without the sublayer."""
    return x if pre else norm(x)


def subtracted(x, layer, norm, norms, pre):
    """The sublayer taken off the path."""
    return x - layer(norm(x)) if pre else norm(x - layer(x))


def on_the_path(x, layer, norm, norms, pre):
    """The path normed, too."""
    return norm(x) + layer(norm(x))


def other_side(x, layer, norm, norms, pre):
    """The norm before the sublayer, or behind: the other of the two."""
    return add(x, layer, norm, not pre)


def normed_path_alone(x, layer, norm, norms, pre):
    """The path normed, and not what goes into the sublayer."""
    return norm(x) + layer(x)


def behind(x, layer, norm, norms, pre):
    """What the sublayer says normed, before it is added."""
    return x + norm(layer(x))


def on_both_sides(x, layer, norm, norms, pre):
    """The norm before the sublayer, and behind the sum."""
    return norm(x + layer(norm(x)))


def normed_twice(x, layer, norm, norms, pre):
    """The norm twice in a row."""
    return add(x, layer, lambda y: norm(norm(y)), pre)


def unnormed(x, layer, norm, norms, pre):
    """Without the norm."""
    return x + layer(x)


def by_norm(i, x, layer, norm, norms, pre):
    """With the norm of another sublayer."""
    return add(x, layer, norms[i % len(norms)], pre)


def joins(place: str, alone_name: Any, out_name: Any, i: int) -> Any:
    """What may happen to the sublayer at one place."""
    ways = (
        (alone, alone_name),
        (left_out, out_name),
        (subtracted, residual_subtracted),
        (on_the_path, norm_on_the_path),
        (normed_path_alone, norm_on_the_path),
        (other_side, the_norm_on_the_other_side),
        (behind, encoder.norm_behind_the_sublayer),
        (on_both_sides, norm_before_and_behind),
        (normed_twice, norm_before_and_behind),
        (unnormed, no_norm),
        (partial(by_norm, i + 1), norms_exchanged),
        (partial(by_norm, i + 2), norms_exchanged),
    )
    return tuple(Deviation({place: way}, name) for way, name in ways)


def everywhere(*places: str) -> Any:
    """What may happen to all sublayers alike, as in a wrapper of theirs."""
    ways = (
        (alone, no_residual),
        (subtracted, residual_subtracted),
        (on_the_path, norm_on_the_path),
        (normed_path_alone, norm_on_the_path),
        (behind, encoder.norm_behind_the_sublayer),
        (on_both_sides, norm_before_and_behind),
        (normed_twice, norm_before_and_behind),
        (unnormed, no_norm),
    )
    return tuple(
        Deviation(dict.fromkeys(places, way), name) for way, name in ways
    )


def straightened(parts):
    """The parts, with a network that does not bend."""
    network = getattr(parts.feed_forward, "straight", parts.feed_forward)
    return parts._replace(feed_forward=network)


def under(past):
    """Parts whose attention to itself has another causal mask."""

    def parts_of(parts):
        def attend(x, mask=None):
            n = x.shape[-2]
            other = None if mask is None else past(n, n)
            return parts.self_attention(x, mask=other)

        return parts._replace(self_attention=attend)

    return parts_of


@mistake
def attentions_exchanged():
    """Right in shape; but an attention has the other's weights.

    Cause: The attention that was made for the context looks at x, or the
        other at the context.
    Cure: By their names.
    Chapter: masks#the-three-masks-of-a-translator
    """


STRAIGHT = Deviation({"parts": straightened}, network_without_a_bend)
UNSCALED = Deviation({"parts": unscaled}, scale_not_used)
EXCHANGED = (
    Deviation(
        {"parts": lambda p: p._replace(self_attention=p.cross_attention)},
        attentions_exchanged,
    ),
    Deviation(
        {"parts": lambda p: p._replace(cross_attention=p.self_attention)},
        attentions_exchanged,
    ),
)
ENCODER = (
    STRAIGHT,
    *FLAT,
    *joins("first", no_residual_around_the_attention, no_attention, 0),
    *joins("second", no_residual_around_the_feed_forward, no_feed_forward, 1),
    *everywhere("first", "second"),
    Deviation({"order": (1, 0)}, sublayers_exchanged),
    Deviation({"apart": True}, side_by_side),
    Deviation({"mask": lambda mask: None}, mask_not_passed_on),
    UNSCALED,
)
DECODER = (
    STRAIGHT,
    *EXCHANGED,
    *joins("first", no_residual_around_the_attention, no_attention, 0),
    *joins(
        "second",
        decoder.no_residual_around_the_cross_attention,
        decoder.no_cross_attention,
        1,
    ),
    *joins("third", no_residual_around_the_feed_forward, no_feed_forward, 2),
    *everywhere("first", "second", "third"),
    *(
        Deviation({"parts": under(one.steps["past"])}, one.known)
        for one in hiding.TRIANGLES
    ),
    *(
        Deviation({"order": order}, sublayers_exchanged)
        for order in ((1, 0, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0), (2, 1, 0))
    ),
    Deviation({"apart": True}, side_by_side),
    Deviation({"mask": lambda mask: None}, mask_not_passed_on),
    UNSCALED,
)


def joined(plan: Plan, x: Tensor, layers: Any, parts: Any) -> Tensor:
    """Sublayers with their norms, by a plan."""
    ways = (plan.first, plan.second, plan.third)
    layers, start = tuple(layers), x
    for turn, i in enumerate(plan.order[: len(layers)]):
        layer, norm = layers[i], parts.norms[i]
        if plan.apart and turn == 1:
            brought = ways[i](start, layer, norm, parts.norms, parts.pre)
            x = x + brought - start if parts.pre else norm(x + layer(start))
        else:
            x = ways[i](x, layer, norm, parts.norms, parts.pre)
    return x


def plan(n: int) -> Plan:
    """The usual one, of so many sublayers."""
    return Plan(usual, usual, usual, tuple(range(n)))
