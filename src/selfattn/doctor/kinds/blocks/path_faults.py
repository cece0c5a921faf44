"""What goes wrong on the way of x through a block, whatever its formula.

Each is seen by what the output is a sum of. Who puts something unknown on the
way, such as a gate, is asked nothing of what lies behind it.
"""

from collections.abc import Collection, Iterator
from itertools import pairwise

from selfattn.doctor.exercise import mistake, name_of
from selfattn.doctor.kinds.blocks import joining
from selfattn.doctor.kinds.blocks.decoder import mistakes as decoder
from selfattn.doctor.kinds.blocks.encoder import mistakes as encoder
from selfattn.doctor.kinds.blocks.flow import Flow
from selfattn.doctor.kinds.blocks.paths import (
    Stage,
    attends,
    deep,
    is_shortcut,
    last_said,
    looks_across,
    meets,
    sources,
    sums_with_x,
)
from selfattn.doctor.kinds.blocks.sums import Said, Sum

TWICE = 2.0
FEWEST = 2  # maps of a sublayer


@mistake
def no_residual_around_a_sublayer():
    """What all sublayers before brought is gone.

    Cause: x = sublayer(…) without x + .
    Cure: x + sublayer(…).
    Chapter: layers#add-a-path-past-the-layer
    """


@mistake
def path_twice():
    """What came before counts twice, and twice again in the next block.

    Cause: x + sublayer(x), where the sublayer adds x itself.
    Cure: Add x once: inside the sublayer, or around it.
    Chapter: layers
    """


@mistake
def taken_off():
    """What a sublayer says is taken off, and there is none beside it to ask.

    Cause: x - sublayer(x). As weights may have any sign, it can learn the
        same; but weights of others are noise in it.
    Cure: x + sublayer(x).
    Chapter: layers
    """


@mistake
def path_normed():
    """There is no clear path, and what comes out is not normed, either.

    Cause: x = norm(x), and then x + sublayer(x): the residual is taken after
        the norm.
    Cure: Keep x, and normalise only what goes into the sublayer; or norm
        every sum.
    Chapter: layers
    """


@mistake
def norms_on_both_sides():
    """One sublayer norms what it passes on, and another does not.

    Cause: Pre-norm, x + sublayer(norm(x)), and post-norm,
        norm(x + sublayer(x)), in one block; or x = norm(x) before a sum.
    Cure: One of the two for all sublayers.
    Chapter: layers
    """


def lost(flow: Flow) -> Iterator[str]:
    """See that x does not come through but by way of a map."""
    if flow.output.lets_through:
        return
    said = last_said(flow.output)
    if not said or any(map(is_shortcut, said)):
        return
    first = said[0]
    if lost_before(first, flow) or side_by_side(said):
        yield name_of(joining.no_residual)
    elif looks_across(first):
        yield name_of(decoder.no_residual_around_the_cross_attention)
    elif attends(first, flow):
        yield name_of(joining.no_residual_around_the_attention)
    elif any(one.word == "convolution" for one in deep(first)):
        yield name_of(no_residual_around_a_sublayer)
    else:
        yield name_of(joining.no_residual_around_the_feed_forward)


def side_by_side(said: list[Said]) -> bool:
    """Whether there are several sublayers, and none looks at another."""
    return len(said) > 1 and not any(
        one in deep(said[-1]) for one in said[:-1]
    )


def lost_before(said: Said, flow: Flow) -> bool:
    """Whether what a network looks at has lost x, too.

    Then a norm before it is one of what attention said, and of nothing else.
    """
    parts = [*deep(said)]
    if not attends(said, flow):
        return False
    for norm in parts:
        if norm.kind != "norm" or norm.of_the_path or "x" not in norm.inputs:
            continue
        above = [
            one for one in parts if one.kind == "map" and norm in deep(one)
        ]
        if len(above) >= FEWEST and not any(
            meets(one.shape, flow.lengths) for one in above
        ):
            return True
    return False


def forgotten(flow: Flow, found: list[Stage]) -> Iterator[str]:
    """What a sublayer brought is seen by the next one, and not passed on."""
    arrived = {said for stage in found for said in stage.beside}
    for value in sums_with_x(flow):
        others = [one for one in value.moving if one not in arrived]
        for said in others:
            if not said.lets_through and is_sublayer(said, flow):
                yield name_of(encoder.residual_from_the_start)
                return


def is_sublayer(said: Said, flow: Flow) -> bool:
    """Whether something is a sublayer: it attends, or has its own norm."""
    return attends(said, flow) or any(normed for normed, _ in sources(said))


def signs(flow: Flow, found: list[Stage]) -> Iterator[str]:
    """What a sublayer says is taken off."""
    taken: list[Said] = []
    added: list[Said] = []
    for stage in found:
        sign = stage.whole.terms[stage.path]
        for said in stage.beside:
            n = stage.whole.terms[said]
            if n and sign:
                (taken if n * sign < 0 else added).append(said)
    if not taken:
        return
    seen: set[Sum] = set().union(*map(looked_at, added))
    alone = [one for one in taken if seen.isdisjoint(looked_at(one))]
    if added and alone:
        yield name_of(joining.residual_subtracted)
    elif not added or unlike(taken, added, flow):
        yield name_of(taken_off)


def unlike(taken: list[Said], added: list[Said], flow: Flow) -> bool:
    """Whether what is taken off is no second half of what is added.

    Two attentions of which one is taken off the other are one sublayer.
    """
    kinds = {attends(one, flow) for one in added}
    return any(attends(one, flow) not in kinds for one in taken)


def looked_at(said: Said) -> set[Sum]:
    """The sums that a sublayer looks at, normed or not."""
    return {value for _, value in sources(said)}


def counted(found: list[Stage]) -> Iterator[str]:
    """A term of the path was added to itself, and counts so often."""
    for stage in found:
        n = stage.whole.terms[stage.path]
        others = [stage.whole.terms[one] for one in stage.beside]
        again = stage.path in stage.whole.twice and n in (TWICE, 2 * TWICE)
        if again and 1.0 in others:
            yield name_of(path_twice)


def placed(found: list[Stage], order: str | None) -> Iterator[str]:
    """Where norms stand, on the path and beside it."""
    path = [stage.path for stage in found]
    ways = [w for stage in found for w in ways_of(stage, path)]
    if order in ("clear", "sandwich"):
        yield from behind_or_before(found)
        said = [one for stage in found for one in stage.beside]
        if order == "sandwich" and any(one.kind != "norm" for one in said):
            yield name_of(joining.the_norm_on_the_other_side)
    elif order == "post" and {*ways} > {"own"} and len(found) > 1:
        yield name_of(joining.the_norm_on_the_other_side)
    elif order is None and {*ways} > {"own"} and between(found):
        yield name_of(norms_on_both_sides)
    elif order is None and "none" in ways and ends_bare(found):
        yield name_of(path_normed)


def ways_of(stage: Stage, path: Collection[Said]) -> Iterator[str]:
    """Whether the sublayers of a stage look at the path by their own norm."""
    for said in stage.beside:
        if sum(one.kind == "map" for one in deep(said)) < FEWEST:
            continue  # such as a convolution that tells where tokens are
        seen = [normed for normed, _ in sources(said, path)]
        if seen:
            yield "own" if all(seen) else "none"


def ends_bare(found: list[Stage]) -> bool:
    """Whether the last sum is not normed, and what was added to is."""
    return bool(found[0].beside) and found[0].path.kind == "norm"


def between(found: list[Stage]) -> bool:
    """Whether a norm on the path has sublayers before it and behind."""
    return len([one for one in found if one.beside]) > 1


def behind_or_before(found: list[Stage]) -> Iterator[str]:
    """Norms on the path of one whose norms stand before its sublayers."""
    path = [stage.path for stage in found]
    for later, stage in pairwise(found):
        if not later.beside or later.path.kind != "norm":
            continue
        direct = "none" in ways_of(later, path)
        if stage.beside and "none" in ways_of(stage, path):
            yield name_of(joining.the_norm_on_the_other_side)
        elif direct:
            yield name_of(joining.norm_on_the_path)
        elif stage.beside:
            yield name_of(joining.norm_before_and_behind)
    ends = len(found) > 1 and not found[0].beside
    if ends and "none" in ways_of(found[1], path):
        yield name_of(joining.the_norm_on_the_other_side)
