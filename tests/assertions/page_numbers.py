"""What a page computes beside what the package computes."""

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
