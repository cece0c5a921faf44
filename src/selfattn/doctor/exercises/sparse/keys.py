"""A prediction: how many keys one query sees in either pattern."""

from selfattn.doctor.exercise import mistaken_value, prediction

PLACE, STRIDE = 95, 10  # token 96, counted from 1
OWN, BLOCKS = PLACE % STRIDE + 1, PLACE // STRIDE


@mistaken_value
def whole_block():
    """The query's own block was counted to its end.

    Cause: A block has 10 keys, but four of them come after token 96.
    Cure: In causal order 6 keys of its own block: tokens 91 to 96.
    """
    return [STRIDE + BLOCKS, STRIDE + BLOCKS, STRIDE + 2 * BLOCKS]


@mistaken_value
def band_of_eleven():
    """The first number has a key too many.

    Cause: The key a whole stride away was counted twice: with the near ones
        and with those that are whole strides away.
    Cure: 10 near ones, the query's own counted, and 9 farther away.
    """
    return [STRIDE + BLOCKS + 1, OWN + BLOCKS, OWN + 2 * BLOCKS]


@mistaken_value
def without_itself():
    """Each number is one too small.

    Cause: The query's own key was not counted. It sees itself, too.
    Cure: One more in each.
    """
    return [STRIDE + BLOCKS - 1, OWN + BLOCKS - 1, OWN + 2 * BLOCKS - 1]


@mistaken_value
def near_ones_only():
    """These are the near keys alone.

    Cause: What comes from far away was left out: 9 keys whole strides away,
        or the last ones of 9 blocks.
    Cure: Add them.
    """
    return [STRIDE, OWN, OWN]


@mistaken_value
def far_ones_only():
    """These are the far keys alone.

    Cause: The near ones were left out: 10 in a band, or 6 in the own block.
    Cure: Add them.
    """
    return [BLOCKS, BLOCKS, 2 * BLOCKS]


@mistaken_value
def both_sides():
    """Later tokens were counted, too.

    Cause: In causal order a query sees nothing that comes after it.
    Cure: Count keys 1 to 96 only.
    """
    return [2 * STRIDE + BLOCKS - 1, STRIDE + BLOCKS, STRIDE + 2 * BLOCKS - 2]


@mistaken_value
def one_summary_for_all():
    """The last number takes no notice of the second summary.

    Cause: Only the last key of each block was counted.
    Cure: With two summaries, two keys of each of the 9 blocks before.
    """
    return [STRIDE + BLOCKS, OWN + BLOCKS, OWN + BLOCKS]


@mistaken_value
def own_summary_too():
    """The last of its own block was counted.

    Cause: Token 100 is the last of the tenth block, and comes later.
    Cure: Nine blocks are complete before token 96.
    """
    more = BLOCKS + 1
    return [STRIDE + BLOCKS, OWN + more, OWN + 2 * more]


KEYS = prediction(
    "sparse/keys",
    asks="how many keys token 96 sees",
    solution=[STRIDE + BLOCKS, OWN + BLOCKS, OWN + 2 * BLOCKS],
    mistakes=(
        whole_block,
        band_of_eleven,
        without_itself,
        near_ones_only,
        far_ones_only,
        both_sides,
        one_summary_for_all,
        own_summary_too,
    ),
)
