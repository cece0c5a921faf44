"""A prediction: the output of *cat*, which sees *the* and itself."""

from selfattn.doctor.exercise import mistaken_value, prediction

# φ of the query (0, 2) is (1, 3); of the keys (1, 1), (2, 0) and (0, 1) it is
# (2, 2), (3, 1) and (1, 2). The values are (1, 0), (0, 2) and (3, 1).
SIMILAR = (8, 6, 7)  # φ(q) · φ(k), for the, cat and sat


@mistaken_value
def not_divided():
    """The numbers are too large: these are sums, not averages.

    Cause: What the query reads from S was not divided.
    Cure: Divide by φ(q) · Z, which is 14.
    """
    return [8.0, 12.0]


@mistaken_value
def with_the_future():
    """*Sat* is in it.

    Cause: All three tokens have been written into S and Z.
    Cure: Under a causal mask *cat* reads after two.
    """
    return [29 / 21, 19 / 21]


@mistaken_value
def without_itself():
    """It is the value of *the* alone.

    Cause: The memory was read before *cat* had been written into it.
    Cure: A token sees itself: write first, then read.
    """
    return [1.0, 0.0]


@mistaken_value
def of_softmax():
    """These are the shares of softmax.

    Cause: The weights are exponentials of the scaled scores.
    Cure: The weights are φ(q) · φ(k) over their sum.
    """
    return [0.804, 0.392]


@mistaken_value
def asked_with_the_key():
    """It is what *cat*'s key would read, not its query.

    Cause: φ of the key (2, 0) was used to read, (3, 1).
    Cure: Read with φ of the query (0, 2), which is (1, 3).
    """
    return [8 / 18, 20 / 18]


@mistaken_value
def of_sat():
    """It is the output of *sat*.

    Cause: The third query was taken, and all three keys.
    Cure: *Cat* is the second.
    """
    return [31 / 28, 29 / 28]


TWO_WORDS = prediction(
    "linear/two_words",
    asks="the output of *cat* under a causal mask, with φ = elu + 1",
    solution=[8 / 14, 12 / 14],
    mistakes=(
        not_divided,
        with_the_future,
        without_itself,
        of_softmax,
        asked_with_the_key,
        of_sat,
    ),
)
