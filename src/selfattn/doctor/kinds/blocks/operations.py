"""What a call of one of PyTorch's operations says, as a block is followed."""

from typing import Any

from torch import Tensor

from selfattn.doctor.kinds.blocks import cores
from selfattn.doctor.kinds.blocks.sums import Said, Sum

# What takes numbers together, of several tokens or of several features.
MAPS = {
    *("mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "convolution"),
    *("_softmax", "_log_softmax", "_safe_softmax", "sum", "mean", "var"),
    *("var_mean", "std", "std_mean", "logsumexp", "linalg_vector_norm"),
    *("cumsum", "prod", "embedding", "_fft_r2c", "_fft_c2c", "_fft_c2r"),
}
NORMS = {"native_layer_norm", "_fused_rms_norm"}


def said_by(
    word: str,
    kwargs: Any,
    given: list[Tensor],
    reads: tuple[Sum, ...],
    made: Tensor,
) -> Said:
    """The term that an operation makes of what it is given."""
    fused = word.startswith(cores.FUSED)
    kind = "map" if word in MAPS or fused else "other"
    return Said(
        "norm" if word in NORMS else kind,
        reads,
        shape=tuple(made.shape),
        word=word,
        inner=cores.inner(word, given),
        times=cores.times(word, kwargs, given),
    )


def fills(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors may have the same numbers, each as often."""
    return one.numel() == other.numel()


def constant(thing: Any) -> float | None:
    """The number that a factor is, if it is one."""
    if not isinstance(thing, Tensor):
        return float(thing) if isinstance(thing, int | float) else None
    flat = thing.detach().flatten()
    if not flat.numel() or not bool((flat == flat[0]).all()):
        return None
    return float(flat[0])
