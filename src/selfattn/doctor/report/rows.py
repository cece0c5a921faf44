"""What can be seen of a row of weights that was foretold, and is not right."""

from torch import Tensor

SUM = 0.02  # so far from 1 may a sum of rounded weights be
NEAR = 0.02  # nearer, and only the rounding is to be looked for


def seen_of_weights(yours: Tensor, expected: Tensor) -> str:
    """What a row of weights cannot be, and this one is; or where to look.

    Nothing, if no row of weights was asked for.
    """
    if len(yours) < 2 or not is_a_row(expected):
        return ""
    if bool((yours < 0).any()):
        return " One of them is below 0: no weight is."
    total = float(yours.sum())
    if abs(total - 1) > SUM:
        return f" They sum to {total:.2f}: a query's weights sum to 1."
    apart = (yours.sort().values - expected.sort().values).abs()
    if bool((apart < SUM / 2).all()) and not is_near(yours, expected):
        return " As numbers they are right, but not at these keys."
    got = ((expected == 0) & (yours > SUM)).nonzero().flatten().tolist()
    if got:
        return f" Number {got[0] + 1} gets a share, but must not be seen."
    if is_near(yours, expected):
        return " That is near: look for what was rounded on the way."
    return " They could be weights, but of other scores: look at these."


def is_near(yours: Tensor, expected: Tensor) -> bool:
    """Whether no number is far off."""
    return bool(((yours - expected).abs() < NEAR).all())


def is_a_row(numbers: Tensor) -> bool:
    """Whether they are shares of one."""
    rest = abs(float(numbers.sum()) - 1)
    return bool((numbers >= 0).all()) and rest < 1e-3
