"""Whether two computations are one: in value and in every gradient."""

import torch
from torch.testing import assert_close

# float64 carries 2.2e-16. A result here is a sum of at most some thousand
# products, its weights behind an exponential of scores of some tens: each
# loses at most some thousand times that. float32 carries 1.2e-7, and what is
# computed in it here adds up tens. Relative to the largest number beside it,
# for a sum may cancel.
CLOSE = {torch.float64: 1e-11, torch.float32: 1e-5}


def assert_near(actual, expected):
    """Equal in shape, type and value, up to rounding."""
    largest = expected.detach().abs().max() if expected.numel() else 0
    bound = CLOSE[expected.dtype] * max(1.0, float(largest))
    assert_close(actual, expected, rtol=0, atol=bound)


def upstream(output):
    """What a loss would send back: random, so that no error cancels."""
    generator = torch.Generator().manual_seed(1)
    g = torch.randn(output.shape, generator=generator, dtype=torch.float64)
    return g.to(output)


def gradients(output, inputs):
    """Of a random weighting of the output, for each of the inputs."""
    return torch.autograd.grad(
        output, inputs, upstream(output), retain_graph=True
    )


def assert_same(actual, expected, inputs):
    """Equal in value, and in the gradient of every input."""
    assert_near(actual, expected)
    for mine, other in zip(
        gradients(actual, inputs), gradients(expected, inputs), strict=True
    ):
        assert_near(mine, other)


def assert_same_layers(ours, theirs, actual, expected, inputs, pairs):
    """Equal in the gradients of all parameters, too.

    Args:
        ours: the module that gave `actual`.
        theirs: the one that gave `expected`.
        actual: what is tested.
        expected: what it should be.
        inputs: what both were given.
        pairs: pairs the parameters of the two up, `pairs(ours, theirs)`, as
            they are now: the modules end with gradients for parameters.
    """
    assert_same(actual, expected, inputs)
    for module, output in ((ours, actual), (theirs, expected)):
        parameters = list(module.parameters())
        for parameter, g in zip(
            parameters, gradients(output, parameters), strict=True
        ):
            parameter.data = g
    paired = pairs(ours, theirs)
    assert sum(mine.numel() for mine, _ in paired) == sum(
        parameter.numel() for parameter in ours.parameters()
    )
    for mine, other in paired:
        assert_near(mine, other)
