"""Hostile keeping: pickles, copies, files of weights."""

import copy
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import nn

from hostile.feeding import Call
from hostile.scenes import folder
from hostile.trials import Case
from hostile.verdicts import Trial


def trials(case: Case) -> Iterator[Trial]:
    """Whatever is kept and fetched again does as it did."""
    call, name = case.call, case.call.target.name
    if call.target.of is None and call.module is None:
        yield case.trial(
            "keeping", "pickled by name", call, call.run, run=pickled(call)
        )
    if call.module is None:
        return
    for how in (by_pickle, by_copy, by_safetensors, by_torch_save):
        detail = f"{how.__name__.replace('_', ' ')}, {name}"
        run = partial(kept_by, how, call)
        yield case.trial("keeping", detail, call, call.run, run=run)


def pickled(call: Call) -> Any:
    """The function, by way of a pickle."""

    def run() -> Any:
        function = pickle.loads(pickle.dumps(call.target.call))
        return function(**call.given)

    return run if "<" not in call.target.call.__qualname__ else call.run


def kept_by(how: Any, call: Call) -> Any:
    """Call the module that comes back."""
    return call._replace(module=how(call.module)).run()


def by_pickle(module: nn.Module) -> nn.Module:
    """There and back."""
    return pickle.loads(pickle.dumps(module))


def by_copy(module: nn.Module) -> nn.Module:
    """A deep copy."""
    return copy.deepcopy(module)


def by_torch_save(module: nn.Module) -> nn.Module:
    """Its weights, by PyTorch's own file, into a module of other weights."""
    path = folder() / "weights.pt"
    torch.save(module.state_dict(), path)
    other = stirred(module)
    other.load_state_dict(torch.load(path, weights_only=True))
    return other


def by_safetensors(module: nn.Module) -> nn.Module:
    """Its weights, by a safetensors file."""
    from safetensors.torch import load_model, save_model

    path = str(folder() / "weights.safetensors")
    save_model(module, path)
    other = stirred(module)
    load_model(other, path)
    return other


def stirred(module: nn.Module) -> nn.Module:
    """A copy with other weights."""
    other = copy.deepcopy(module)
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(1.0)
    return other
