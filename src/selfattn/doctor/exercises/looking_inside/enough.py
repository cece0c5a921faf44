"""A prediction: how many keys are enough for the output of a head."""

from selfattn.doctor.exercise import mistaken_value, prediction

D_V = 8
KEYS = 20


@mistaken_value
def dimensions_alone():
    """The weights must also sum to one.

    Cause: d_v numbers of the output have to stay, and nothing else.
    Cure: The sum is one number more: d_v + 1.
    """
    return D_V


@mistaken_value
def all_of_them():
    """There is room to move weight without moving the output.

    Cause: Each weight was taken to be fixed by the output.
    Cure: Twenty unknown weights, and how many equations?
    """
    return KEYS


@mistaken_value
def what_is_free():
    """So many can be dropped; the rest are enough.

    Cause: The unknowns that remain free were counted.
    Cure: Subtract them from the number of keys.
    """
    return KEYS - D_V - 1


@mistaken_value
def one_too_many():
    """One key more than is needed.

    Cause: A key was added once more than the sum asks for.
    Cure: d_v equations and one: d_v + 1 keys.
    """
    return D_V + 2


@mistaken_value
def one_key():
    """One key gives its own value, and no average.

    Cause: It was asked for the key with the largest weight.
    Cure: The output, to the last digit, must stay.
    """
    return 1


ENOUGH = prediction(
    "looking_inside/enough",
    asks="how many of 20 keys are always enough for a head of 8 features",
    solution=D_V + 1,
    mistakes=(
        dimensions_alone,
        all_of_them,
        what_is_free,
        one_too_many,
        one_key,
    ),
)
