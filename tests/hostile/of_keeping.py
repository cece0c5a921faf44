"""Hostile keeping: pickles, copies, files of weights."""

import copy
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.utils import prune

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
    if name.endswith(".forward"):
        run = partial(by_functional_call, call)
        wanted = partial(with_other_weights, call)
        yield case.trial("keeping", "functional_call", call, wanted, run=run)
    for how in (pruned, normed):
        detail = f"{how.__name__}, {name}"
        run = partial(kept_by, how, call)
        yield case.trial(
            "keeping",
            detail,
            call,
            call.run,
            run=run,
            dtype=torch.float32,
        )


def by_functional_call(call: Call) -> list[Any]:
    """With other weights for once; and whether its own are back then."""
    module = call.module
    assert module is not None
    before = dict(module.named_parameters(remove_duplicate=False))
    other = {n: x.detach() + 0.1 for n, x in module.named_parameters()}
    result = torch.func.functional_call(module, other, (), call.given)
    after = dict(module.named_parameters(remove_duplicate=False))
    return [result, [after[name] is x for name, x in before.items()]]


def with_other_weights(call: Call) -> list[Any]:
    """With a copy that has those weights."""
    module = call.module
    assert module is not None
    changed = copy.deepcopy(module)
    with torch.no_grad():
        for weight in changed.parameters():
            weight.add_(0.1)
    names = dict(module.named_parameters(remove_duplicate=False))
    return [call._replace(module=changed).run(), [True for _ in names]]


def pruned(module: nn.Module) -> nn.Module:
    """Of every matrix nothing is cut away, in float32; then it is float64:
    until its next call, it has its weight in float32 beside that.
    """
    other = copy.deepcopy(module).float()
    for layer in other.modules():
        if isinstance(layer, nn.Linear | nn.Conv1d):
            prune.identity(layer, "weight")
    return other.double()


def normed(module: nn.Module) -> nn.Module:
    """Each matrix is a direction and a length, which give the same."""
    other = copy.deepcopy(module)
    for layer in other.modules():
        if isinstance(layer, nn.Linear | nn.Conv1d):
            nn.utils.parametrizations.weight_norm(layer)
    return other


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
