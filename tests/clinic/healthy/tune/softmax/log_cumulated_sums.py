"""A probabilist's: running sums in logarithms, the last of which is all."""

import torch


class Normaliser:
    """Makes distributions; what is impossible stays so, all of it if all is.

    A row in which nothing is possible has no mass to share: it is zeros.
    """

    def log_partition(self, energies: torch.Tensor) -> torch.Tensor:
        return torch.logcumsumexp(energies, dim=-1).narrow(-1, -1, 1)

    def distribution(self, energies):
        # relative to the likeliest, so that no digits are lost far from zero
        top = energies.detach().amax(dim=-1, keepdim=True)
        relative = energies - top
        return (relative - self.log_partition(relative)).exp()

    def __call__(self, energies, possible=None):
        if possible is None:
            return self.distribution(energies)
        possible = possible.expand_as(energies)
        some = possible.any(dim=-1, keepdim=True)
        # an impossible row is made ordinary first, so that no NaN arises
        ordinary = torch.where(possible | ~some, energies, -torch.inf)
        probability = self.distribution(ordinary)
        return torch.where(some, probability, torch.zeros_like(probability))


PATIENT = Normaliser()
FACTS = {
    "mask": "keep",
    "names": {"mask": "possible"},
    "empty_row": "zeros",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"energies": "b n m", "possible?": "keep b n m"}
OTHER_INPUTS = [
    {"energies": "n m", "possible?": "keep n m"},
    {"energies": "b h n m", "possible": "keep b h n m"},
]
