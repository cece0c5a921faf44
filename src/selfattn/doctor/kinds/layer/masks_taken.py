"""Which axes a layer's mask may have, as it is called with each."""

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.layer import calling
from selfattn.doctor.kinds.layer.facts import FACTS
from selfattn.doctor.kinds.text_layouts import tried
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

BATCH, N, N_K = 7, 5, 3  # no two alike, nor what many layers have heads


def axes_taken(
    module: nn.Module, known: Facts, d_model: int, d_context: int, cross: bool
) -> list[str]:
    """The axes with which it does not raise; all, if it always does.

    To read it in the other ways takes long, and comes to nothing.
    """
    every = [*FACTS["mask_axes"].options]
    taken = [
        axes
        for axes in every
        if takes(
            module, {**known, "mask_axes": axes}, d_model, d_context, cross
        )
    ]
    return taken or every


def takes(
    module: nn.Module, known: Facts, d_model: int, d_context: int, cross: bool
) -> bool:
    """Whether it can be called with a mask of these axes, whatever it says."""
    only = known.get("length")
    texts = [numbers(BATCH, only or N, d_model)]
    if cross:
        texts.append(numbers(BATCH, only or N_K, d_context))
    n_k = texts[-1].shape[1]
    mask = (torch.arange(n_k) < n_k - 1).expand(only or N, -1)
    layouts = tried(known.get("layout"))
    return any(
        isinstance(trial_calls.outcome(call, *texts, mask=mask), Tensor)
        for layout in layouts
        for meaning in ("keep", "add")
        for call in [
            calling.adapt(module, {**known, "layout": layout, "mask": meaning})
        ]
    )
