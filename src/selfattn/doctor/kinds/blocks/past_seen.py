"""Whether a block sees later tokens, or the near ones alone, by calls."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import properties
from selfattn.doctor.kinds.blocks.hearing import of_itself
from selfattn.doctor.kinds.blocks.stand_ins import PASTS
from selfattn.masks import causal_mask


def seen_past(
    call: Callable[..., Any],
    d_model: int,
    d_context: int | None,
    only: int | None = None,
) -> bool | str:
    """Whether it hides later tokens, of which nobody told.

    It may see some tokens alone, near ones say; then that is its "own".
    """
    given, n = properties.texts(d_model, d_context, only), only or properties.N
    sees = trial_calls.outcome(of_itself, call, given)
    if not isinstance(sees, Tensor) or bool(sees.all()):
        return False
    pasts = [past(n, n) for _, past in PASTS if past is not None]
    known = [causal_mask(n, n), *pasts]
    return True if any(map(sees.equal, known)) else "own"


def sees_near(
    call: Callable[..., Any],
    d_model: int,
    d_context: int | None,
    only: int | None = None,
) -> bool:
    """Whether it sees the latest tokens of the past, and no others.

    So does one that has a convolution, or a window, for the past.
    """
    given, n = properties.texts(d_model, d_context, only), only or properties.N
    sees = trial_calls.outcome(of_itself, call, given)
    if not isinstance(sees, Tensor) or len(sees) != n:
        return False
    reach = sees[-1].sum()
    near = causal_mask(n, n) & ~causal_mask(n, n).tril(-int(reach))
    return 1 < int(reach) < n and bool(sees.equal(near))
