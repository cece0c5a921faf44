"""A quant's: what is near is told by a rule, dispatched upon its type."""

from functools import singledispatch

import torch


@singledispatch
def tradable(rule, days, device):
    raise TypeError(f"no rule: {rule!r}")


@tradable.register
def _(rule: int, days, device):
    """So many days to each side, today among them."""
    day = torch.arange(days, device=device)
    return torch.sub(day[:, None], day).abs().lt(rule)


@tradable.register
def _(rule: torch.Tensor, days, device):
    """A calendar of its own."""
    return rule[:days, :days].to(device)


def with_horizon(rule):
    """Attention between days; its last weights are in `.exposure`."""

    def attend(signal, factor, returns):
        """Each (books, days, desks, features)."""
        days, width = signal.shape[1], signal.shape[3]
        assert factor.shape[1] == days, "a day has one signal and one factor"
        loadings = torch.einsum("btpf,bspf->btsp", signal, factor)
        loadings = loadings.div(width**0.5)
        open_ = tradable(rule, days, signal.device)[:, :, None]
        loadings = torch.where(open_, loadings, -torch.inf)
        exposure = torch.softmax(loadings, 2)
        attend.exposure = exposure.detach()
        return torch.einsum("btsp,bspr->btpr", exposure, returns)

    attend.exposure = None
    return attend


PATIENT = with_horizon(4)
FACTS = {
    "layout": "BNHD",
    "causal": False,
    "window": 4,
    "square": True,
    "names": {"q": "signal", "k": "factor", "v": "returns"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "signal": "b n h d",
    "factor": "b n h d",
    "returns": "b n h e",
}
