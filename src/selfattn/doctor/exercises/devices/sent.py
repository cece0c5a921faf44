"""A prediction: what a rank sends, in a ring and in an all-to-all."""

from selfattn.doctor.exercise import mistaken_value, prediction

RANKS, N, FEATURES = 4, 24, 32
PIECE = N // RANKS * FEATURES  # one rank's keys, say


@mistaken_value
def keys_alone():
    """The ring's number is half of what travels.

    Cause: Keys were counted, and the values that travel with them were not.
    Cure: Twice as much in the ring.
    """
    return [(RANKS - 1) * PIECE, 4 * PIECE * (RANKS - 1) // RANKS]


@mistaken_value
def a_hop_too_many():
    """Your ring takes one hop more than it needs.

    Cause: After three hops each of four blocks has been everywhere; only on
        the way back does a gradient go home.
    Cure: Ranks less one.
    """
    return [2 * RANKS * PIECE, 4 * PIECE * (RANKS - 1) // RANKS]


@mistaken_value
def own_piece_sent():
    """In your all-to-all a rank sends itself a piece.

    Cause: A quarter of the heads of its tokens is its own, and stays.
    Cure: Three quarters of the four pieces.
    """
    return [2 * (RANKS - 1) * PIECE, 4 * PIECE]


@mistaken_value
def no_way_home():
    """In your all-to-all the output stays with the heads.

    Cause: Queries, keys and values were counted, and not the output, which
        is swapped back.
    Cure: Four swaps, not three.
    """
    return [2 * (RANKS - 1) * PIECE, 3 * PIECE * (RANKS - 1) // RANKS]


@mistaken_value
def all_tokens():
    """Both numbers are those of all four ranks together.

    Cause: All 24 tokens were counted, and a rank has 6.
    Cure: Divide by the number of ranks.
    """
    return [
        2 * (RANKS - 1) * PIECE * RANKS,
        4 * PIECE * (RANKS - 1),
    ]


@mistaken_value
def queries_travel_too():
    """Three things travel in your ring.

    Cause: Queries were sent round as well. They stay, and so does what is
        collected for them.
    Cure: Keys and values alone.
    """
    return [3 * (RANKS - 1) * PIECE, 4 * PIECE * (RANKS - 1) // RANKS]


@mistaken_value
def the_other_way_round():
    """The numbers are right and have changed places.

    Cause: The all-to-all stands first.
    Cure: The ring first.
    """
    return [4 * PIECE * (RANKS - 1) // RANKS, 2 * (RANKS - 1) * PIECE]


SENT = prediction(
    "devices/sent",
    asks="how many numbers a rank sends: in the ring, in the all-to-all",
    solution=[2 * (RANKS - 1) * PIECE, 4 * PIECE * (RANKS - 1) // RANKS],
    mistakes=(
        keys_alone,
        a_hop_too_many,
        own_piece_sent,
        no_way_home,
        all_tokens,
        queries_travel_too,
        the_other_way_round,
    ),
)
