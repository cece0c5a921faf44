"""The longest text that a layer takes, where nobody said that there is one.

A mask or a table that it keeps has an end, beyond which it raises.
"""

from torch import Tensor, nn

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.layer import calling
from selfattn.doctor.kinds.text_layouts import tried
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

USUAL, MOST = 7, 13  # tokens of a text in what is asked, and of the longest


def longest_taken(module: nn.Module, known: Facts, d: int) -> int | None:
    """The longest that it takes; None if that is as long as is ever asked."""
    for layout in tried(known.get("layout")):
        call = calling.adapt(module, {**known, "layout": layout})

        def takes(n: int, call: object = call) -> bool:
            x = numbers(1, n, d).expand(2, n, d)
            made = trial_calls.outcome(call, x)  # type: ignore[arg-type]
            return isinstance(made, Tensor) and made.shape[:2] == x.shape[:2]

        if takes(USUAL):
            lengths = range(MOST, USUAL - 1, -1)
            longest = next(n for n in lengths if takes(n))
            return None if longest == MOST else longest
    return None
