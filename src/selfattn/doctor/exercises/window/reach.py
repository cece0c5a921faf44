"""A prediction: how far a stack of windows reaches."""

from selfattn.doctor.exercise import mistaken_value, prediction

W, N = 5, 40


@mistaken_value
def window_times_layers():
    """Each layer was counted as 5 tokens further.

    Cause: The window counts the query's own place, which is no step back.
    Cure: w - 1 = 4 further for each layer, and the token itself once.
    """
    return [2 * W, 4 * W, N]


@mistaken_value
def without_itself():
    """Each number is one too small.

    Cause: The token itself was not counted. It depends on itself, too.
    Cure: L (w - 1) + 1.
    """
    return [2 * (W - 1), 4 * (W - 1), N - 1]


@mistaken_value
def one_layer_only():
    """These are the keys of one layer.

    Cause: That what a key says was itself made of what it had seen was
        left out.
    Cure: Add w - 1 for each further layer.
    """
    return [W, W, N]


@mistaken_value
def both_sides():
    """These are windows to both sides.

    Cause: A causal window reaches back alone.
    Cure: L (w - 1) + 1, not twice that.
    """
    return [2 * 2 * (W - 1) + 1, 4 * 2 * (W - 1) + 1, N]


@mistaken_value
def multiplied():
    """Windows were multiplied.

    Cause: That would be so if each layer left gaps as wide as the last
        one's reach: dilated windows do.
    Cure: Without gaps, reaches add up.
    """
    return [W**2, N, N]


@mistaken_value
def full_layer_ignored():
    """The last number takes no notice of the full layer.

    Cause: The third layer was counted like the others.
    Cure: One layer without a window brings the whole text, and what comes
        after it passes that on.
    """
    return [2 * (W - 1) + 1, 4 * (W - 1) + 1, 4 * (W - 1) + 1]


@mistaken_value
def full_layer_alone_counted():
    """The last number is what lies before the window.

    Cause: The window's own keys were taken away from the text.
    Cure: The whole text: 40.
    """
    return [2 * (W - 1) + 1, 4 * (W - 1) + 1, N - W]


REACH = prediction(
    "window/reach",
    asks="on how many tokens the last one depends",
    solution=[2 * (W - 1) + 1, 4 * (W - 1) + 1, N],
    mistakes=(
        window_times_layers,
        without_itself,
        one_layer_only,
        both_sides,
        multiplied,
        full_layer_ignored,
        full_layer_alone_counted,
    ),
)
