"""A prediction: what mixtures save, and what they ask for in return."""

from selfattn.doctor.exercise import mistaken_value, prediction

N, MIXTURES, D = 4096, 256, 64


def numbers(saved: float, weights: float, longer: float) -> list[float]:
    """How many times fewer operations, weights of E and F, and the growth."""
    return [saved, weights, longer]


@mistaken_value
def mixing_forgotten():
    """The operations of the mixing are missing.

    Cause: Only scores and weighted sums were counted: 4nkd.
    Cure: EK and FV are 2nkd operations each, as much again: 8nkd.
    """
    return numbers(N / MIXTURES, 2 * N * MIXTURES, 2)


@mistaken_value
def one_matrix():
    """There are twice as many weights.

    Cause: One matrix was counted.
    Cure: E mixes the keys, F the values: 2nk.
    """
    return numbers(N / MIXTURES / 2, N * MIXTURES, 2)


@mistaken_value
def a_matrix_of_features():
    """The weights do not depend on the width of a head.

    Cause: E was taken for a matrix that acts on features.
    Cure: It acts on the length: k rows, n columns.
    """
    return numbers(N / MIXTURES / 2, 2 * MIXTURES * D, 2)


@mistaken_value
def still_a_square():
    """With k held, operations grow as the length.

    Cause: Four times as many for twice the tokens: that is full attention.
    Cure: 8nkd has one n in it.
    """
    return numbers(N / MIXTURES / 2, 2 * N * MIXTURES, 4)


@mistaken_value
def the_other_way_round():
    """That is the share that is left.

    Cause: Linformer's operations were divided by those of attention.
    Cure: How many times fewer: 4n²d over 8nkd.
    """
    return numbers(2 * MIXTURES / N, 2 * N * MIXTURES, 2)


COUNTED = prediction(
    "linformer/counted",
    asks="how many times fewer operations, how many weights, how it grows",
    solution=numbers(N / MIXTURES / 2, 2 * N * MIXTURES, 2),
    tolerance=0.01,
    mistakes=(
        mixing_forgotten,
        one_matrix,
        a_matrix_of_features,
        still_a_square,
        the_other_way_round,
    ),
)
