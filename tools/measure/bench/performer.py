"""FAVOR+, the random features of Performer."""

import contextlib
import copy
from collections.abc import Callable, Iterator
from functools import partial

from torch import Tensor

from selfattn import attention, performer_attention
from selfattn.efficient.performer import performer_weights
from tools.measure.bench.fast_transformers import fast_linear
from tools.measure.bench.race import D, Race, lean_sizes, sdpa

Call = Callable[..., Tensor]  # of q, k and v
Features = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def races() -> Iterator[Race]:
    """FAVOR+ with 266 features, as others have by default for 64 numbers."""
    for causal in (False, True):
        ours = partial(performer_attention, causal=causal, n_features=266)
        for n, training in lean_sizes(1024, 4096):
            race = {
                "sdpa": partial(sdpa, causal=causal),
                "performer_attention": ours,
            }
            fair = {
                "sdpa": partial(attention, causal=causal),
                "performer_attention": partial(definition, causal=causal),
            }
            for peer, call, features, eps in others(causal):
                race[peer] = call
                fair[peer] = partial(of_features, features, eps, causal)
            name = "causal" if causal else "full"
            yield Race(name, n, training, race, fair)


def definition(q, k, v, causal=False):
    """What FAVOR+ stands for, with the same random directions."""
    return performer_weights(q, k, causal=causal, n_features=266) @ v


def of_features(
    features: Features, eps: float, causal: bool, q, k, v
) -> Tensor:
    """The table of a library's own features, in float64, times the values.

    Where it draws them at each call, they are those of the last call. Eps is
    what it adds to the sums of its keys' features.
    """
    f_q, f_k = features(q, k)
    similarity = f_q @ f_k.mT
    if causal:
        similarity = similarity.tril(k.shape[-2] - q.shape[-2])
    total = similarity.sum(dim=-1, keepdim=True)
    total = total + eps * f_q.sum(dim=-1, keepdim=True)
    return similarity / total @ v


def others(causal: bool) -> Iterator[tuple[str, Call, Features, float]]:
    """The other libraries' FAVOR+: their features are other random ones."""
    with contextlib.suppress(ImportError):
        eps = 1e-6 if causal else 0.0
        yield "performer-pytorch", *lucidrains(causal), eps
    try:
        from fast_transformers.feature_maps import Favor
    except ImportError:
        return
    name = "pytorch-fast-transformers"
    call = fast_linear(causal, name, Favor.factory(n_dims=266))[name]

    def features(q, k):
        exact = copy.deepcopy(call.features).double()
        return exact.forward_queries(q), exact.forward_keys(k)

    yield name, call, features, 0.0


def lucidrains(causal: bool) -> tuple[Call, Features]:
    """performer-pytorch; causally on the other library's compiled product.

    Without CUDA it would take a loop that its authors call inefficient,
    though the product that it asks for has been compiled for processors, too.
    """
    from performer_pytorch import performer_pytorch as library

    peer = library.FastAttention(D, 266, causal=causal)
    if causal:
        import fast_transformers.causal_product  # noqa: F401

        peer.causal_linear_fn = library.causal_linear_attention

    def features(q, k):
        kernel = partial(
            library.softmax_kernel,
            projection_matrix=peer.projection_matrix.double(),
        )
        return kernel(q, is_query=True), kernel(k, is_query=False)

    return peer, features
