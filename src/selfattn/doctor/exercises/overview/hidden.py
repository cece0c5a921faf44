"""A prediction: what hiding *the* from *sat* costs, on paper."""

from selfattn.doctor.exercise import mistaken_value, prediction

# Sat's weights are (.306, .620, .074); the values (1, 0), (0, 2), (3, 1).
HIDDEN = 0.3057
SEEN = (0.3211, 1.8930)  # the average over cat and sat alone
FULL = (0.5287, 1.3143)


@mistaken_value
def not_renormalised():
    """Your difference is the hidden part alone.

    Cause: The weight of *the* was taken away, and nobody took it over.
    Cure: What is left is renormalised: the difference is the hidden weight
        times (average of the seen - average of the hidden).
    """
    return [HIDDEN, -HIDDEN, 0.0]


@mistaken_value
def seen_weight():
    """The first number is the weight that is still seen.

    Cause: .620 + .074 was taken.
    Cure: Hidden is what *the* had: .306.
    """
    return [1 - HIDDEN, SEEN[0] - FULL[0], SEEN[1] - FULL[1]]


@mistaken_value
def other_sign():
    """The difference has the wrong sign.

    Cause: Attention minus the window.
    Cure: The window's output minus attention's.
    """
    return [HIDDEN, FULL[0] - SEEN[0], FULL[1] - SEEN[1]]


@mistaken_value
def without_the_weight():
    """The difference is that of the two averages.

    Cause: It was not multiplied by the hidden weight.
    Cure: h (seen - hidden).
    """
    return [HIDDEN, SEEN[0] - 1.0, SEEN[1] - 0.0]


@mistaken_value
def the_output_itself():
    """It is the window's output, not how far that is off.

    Cause: Attention's output was not subtracted.
    Cure: (.321, 1.893) - (.529, 1.314).
    """
    return [HIDDEN, *SEEN]


HIDDEN_WEIGHT = prediction(
    "overview/hidden",
    asks="the weight that is hidden, and the difference in both features",
    solution=[HIDDEN, SEEN[0] - FULL[0], SEEN[1] - FULL[1]],
    mistakes=(
        not_renormalised,
        seen_weight,
        other_sign,
        without_the_weight,
        the_output_itself,
    ),
)
