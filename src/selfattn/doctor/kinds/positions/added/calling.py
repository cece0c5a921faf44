"""How modules that add positions are called, and where their table is."""

import copy
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading, UnclearError
from selfattn.doctor.patient import Facts

FACTS = {
    "table": Fact("the table that it adds, (rows, d)", saying=sayings.TABLE),
    "layout": Fact(
        "the axes of x",
        {"BND": "batch, tokens, features", "NBD": "tokens first"},
        tried=False,
    ),
}


def prepare(thing: Any, facts: Facts) -> Any:
    """A copy that is evaluated, so that nothing is dropped."""
    return (
        copy.deepcopy(thing).eval() if isinstance(thing, nn.Module) else thing
    )


def read(thing: Any, told: Facts) -> Reading:
    """The module's table: a buffer or parameter that has a row a position.

    Raises:
        UnclearError: if there is none, or more than one.
    """
    if told.get("table") is not None:
        return Reading()
    if not isinstance(thing, nn.Module):
        raise UnclearError("Say table=…, the table that it adds, (rows, d).")
    found = [*thing.named_buffers(), *thing.named_parameters()]
    tables = [x.detach() for _, x in found if x.squeeze().ndim == 2]
    if len(tables) != 1:
        raise UnclearError(
            f"I find {len(tables)} tables in it. Say table=…, the one that "
            "it adds, (rows, d)."
        )
    return Reading({"table": tables[0].squeeze()})


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it in its own layout."""

    def add(x: Tensor) -> object:
        if facts.get("layout") == "NBD":
            output = thing(x.transpose(0, 1))
            return output.transpose(0, 1) if output.ndim == 3 else output
        return thing(x)

    return add
