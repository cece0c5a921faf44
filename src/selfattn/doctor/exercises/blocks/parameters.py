"""A prediction: the weights of a decoder block."""

from selfattn.doctor.exercise import mistaken_value, prediction

D = 64


@mistaken_value
def encoder_block():
    """It is an encoder block that has so many.

    Cause: Four matrices of attention and two of the network: 12 d².
    Cure: A decoder block has a second attention: 4 d² more.
    """
    return 12 * D * D


@mistaken_value
def attentions_alone():
    """The network is missing.

    Cause: Two attentions have 8 d².
    Cure: Add d · 4d + 4d · d.
    """
    return 8 * D * D


@mistaken_value
def cross_without_its_own_queries():
    """Cross-attention has four matrices as well.

    Cause: Its query or output matrix was not counted, perhaps as if shared.
    Cure: It shares nothing with self-attention: 4 d² of its own.
    """
    return 15 * D * D


@mistaken_value
def two_networks():
    """There is one network in a block.

    Cause: One was counted behind each attention.
    Cure: Two attentions, then one network: 4 + 4 + 8.
    """
    return 24 * D * D


@mistaken_value
def narrow_network():
    """The network is wider within.

    Cause: Its two matrices were taken as d × d.
    Cure: They are d × 4d and 4d × d.
    """
    return 10 * D * D


@mistaken_value
def with_biases_and_norms():
    """These are all parameters; matrices alone were asked for.

    Cause: Biases, 13 d, and three norms, 6 d, are counted as well.
    Cure: Leave vectors out.
    """
    return 16 * D * D + 19 * D


@mistaken_value
def in_units_of_the_square():
    """So many times d² it is.

    Cause: 16 has not been multiplied by 64².
    Cure: 16 · 4,096.
    """
    return 16


PARAMETERS = prediction(
    "blocks/parameters",
    asks="the entries of all weight matrices of a decoder block, d_model 64",
    solution=16 * D * D,
    mistakes=(
        encoder_block,
        attentions_alone,
        cross_without_its_own_queries,
        two_networks,
        narrow_network,
        with_biases_and_norms,
        in_units_of_the_square,
    ),
)
