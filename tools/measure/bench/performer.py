"""FAVOR+, the random features of Performer."""

from collections.abc import Callable, Iterator
from functools import partial

from torch import Tensor

from selfattn import attention, performer_attention
from selfattn.efficient.performer import performer_weights
from tools.measure.bench.fast_transformers import fast_linear
from tools.measure.bench.race import D, Race, lean_sizes, sdpa


def races() -> Iterator[Race]:
    """FAVOR+ with 266 features, as others have by default for 64 numbers."""
    for causal in (False, True):
        ours = partial(performer_attention, causal=causal, n_features=266)
        for n, training in lean_sizes(1024, 4096):
            race = {
                "sdpa": partial(sdpa, causal=causal),
                "performer_attention": ours,
            }
            race |= others(causal, n)
            fair = {
                "sdpa": partial(attention, causal=causal),
                "performer_attention": partial(definition, causal=causal),
            }
            name = "causal" if causal else "full"
            yield Race(name, n, training, race, fair)


def definition(q, k, v, causal=False):
    """What FAVOR+ stands for, with the same random directions."""
    return performer_weights(q, k, causal=causal, n_features=266) @ v


def others(causal: bool, n: int) -> dict[str, Callable[..., Tensor]]:
    """The other libraries' FAVOR+: their features are other random ones."""
    found = {}
    try:
        from performer_pytorch import FastAttention

        # Causally, in training, it holds over 50 times the kernel's bytes.
        if not causal or n == 1024:
            found["performer-pytorch"] = FastAttention(D, 266, causal=causal)
    except ImportError:
        pass
    try:
        from fast_transformers.feature_maps import Favor

        features = Favor.factory(n_dims=266)
        found |= fast_linear(causal, "pytorch-fast-transformers", features)
    except ImportError:
        pass
    return found
