"""Replicas: what `torch.nn.DataParallel` makes of a model, without a GPU."""

from torch import nn


def replica(model: nn.Module) -> nn.Module:
    """A model that shares all modules' functions, and whose parameters are
    tensors made of the model's own: no module keeps them by itself.
    """
    made = {
        part: part._replicate_for_data_parallel() for part in model.modules()
    }
    for part, copy in made.items():
        for name, child in part._modules.items():
            copy._modules[name] = made.get(child)
        for name, parameter in part._parameters.items():
            if parameter is None:
                copy._parameters[name] = None
            else:
                setattr(copy, name, parameter.clone())
    return made[model]
