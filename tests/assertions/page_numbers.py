"""What a page computes beside what the package computes."""

import itertools
import json

import torch

# float64 carries 2.2e-16; a dot product of 64 features and an exponential
# lose at most a few hundred times that. Relative to the size of what is
# added, since a sum may cancel.
CLOSE = 1e-12


def assert_close(theirs, ours, size):
    """Equal to 1e-12 of the size of what was added up."""
    # JSON writes NaN and infinity as null.
    numbers = json.loads(json.dumps(theirs).replace("null", "NaN"))
    theirs = torch.tensor(numbers, dtype=torch.float64).reshape(ours.shape)
    assert ((theirs - ours).abs() <= CLOSE * size).all()


def settings_of(names, *choices):
    """Every choice with every other: settings of these names."""
    return [
        dict(zip(names, values, strict=True))
        for values in itertools.product(*choices)
    ]


def compare_each(compare, results, settings):
    """Compare what the page has with the package, setting by setting."""
    for values, theirs in zip(settings, results, strict=True):
        compare(theirs, values)


def compare_all(state, results, settings):
    """Raise AssertionError unless the page has the package's `state`."""
    for values, theirs in zip(settings, results, strict=True):
        assert theirs == state(**values)._asdict(), values


def leaves(x):
    """The numbers of a nested list, in order."""
    if isinstance(x, list):
        for part in x:
            yield from leaves(part)
    else:
        yield x
