"""Parts of a block that were made, and do nothing, or the same again."""

import re
from collections.abc import Iterator

from torch import nn

from selfattn.doctor.exercise import name_of
from selfattn.doctor.kinds.blocks import joining
from selfattn.doctor.kinds.blocks.flow import Flow
from selfattn.doctor.kinds.blocks.paths import Stage, attends
from selfattn.doctor.kinds.blocks.sums import Said, below
from selfattn.doctor.kinds.blocks.wrapped import called_attention, holds_maps
from selfattn.doctor.kinds.layer.deviations import projection_not_used
from selfattn.doctor.kinds.layer.norming import is_norm
from selfattn.doctor.kinds.layer.words import part_called

NETWORK = r"(^|_)(ff|ffn|mlp|fc|network|feed_?forward|ffwd)\d*($|_)"
ELSEWHERE = ("cross", "enc", "memory", "context", "src", "adapter")


def repeated(flow: Flow) -> Iterator[str]:
    """A norm is applied to what it gave."""
    for value in below(flow.output):
        for said in value.terms:
            if said.kind == "norm" and said.part is not None:
                inner = said.reads[0].moving
                if len(inner) == 1 and inner[0].part is said.part:
                    yield name_of(joining.norm_before_and_behind)
                    return


def unused(block: nn.Module, flow: Flow) -> Iterator[str]:
    """A part was made, and nothing of it is in what comes out.

    Who does not look at the context is told so, and not of each map for it.
    """
    if len(flow.lengths) > 1 and "context" not in flow.output.inputs:
        return
    found: list[str] = []
    said = {
        s.part
        for output in flow.outputs
        for value in below(output)
        for s in value.terms
    }
    for module in (block, *flow.called):
        for name, part in module.named_children():
            if any(word in name.lower() for word in ELSEWHERE):
                continue
            if part in said or {*part.parameters()} & said:
                continue
            found += filter(None, [of_unused(name, part)])
        found += [
            name_of(projection_not_used)
            for name, weights in module.named_parameters(recurse=False)
            if weights.ndim > 1 and weights not in said
            if name != "weight" and part_called(name)
        ]
    norm = name_of(joining.no_norm)
    yield from sorted(found, key=lambda one: one == norm)


def of_unused(name: str, part: nn.Module) -> str:
    """What it is called if a part does nothing; "" if that may be meant."""
    if not [*part.parameters()]:
        return ""
    if is_norm(part):
        return name_of(joining.no_norm)
    if not holds_maps(part):
        return ""
    if re.search(NETWORK, name.lower()):
        return name_of(joining.no_feed_forward)
    if called_attention(name, part):
        return name_of(joining.no_attention)
    own = type(part) in (nn.Linear, nn.Conv1d)
    return name_of(projection_not_used) if own else ""


def straight(flow: Flow, found: list[Stage]) -> Iterator[str]:
    """A sublayer is two matrices in a row, the first one the wider."""
    for stage in found:
        for said in stage.beside:
            if chained(said) > 1 and not attends(said, flow):
                yield name_of(joining.network_without_a_bend)


def chained(said: Said) -> int:
    """How many matrices stand in a row before a norm, or x; 0 if not so."""
    n, width = 0, said.shape[-1:]
    while said.word in ("mm", "addmm"):
        moving = [one for one in said.reads if one.inputs]
        if len(moving) != 1 or (n and said.shape[-1:] < width):
            return 0
        n += 1
        terms = moving[0].moving
        if len(terms) != 1 or moving[0].has_x or terms[0].kind == "norm":
            return n
        [said] = terms
    return 0
