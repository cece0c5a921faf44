"""A prediction: how many numbers a layer with shared key heads has learned.

768 features, 12 query heads, 4 key and value heads, biases everywhere.
"""

from selfattn.doctor.exercise import mistaken_value, prediction

D, H, KV = 768, 12, 4
SHARED = D // H * KV  # features of the keys, and of the values


@mistaken_value
def no_sharing():
    """That is the layer in which every head has keys of its own.

    Cause: W_k and W_v are counted as 768 × 768.
    Cure: Four key heads of 64 features make them 768 × 256.
    """
    return 4 * (D * D + D)


@mistaken_value
def no_sharing_and_no_biases():
    """That is the layer with keys for every head, and without biases.

    Cause: Four matrices of 768 × 768 are counted.
    Cure: W_k and W_v are 768 × 256; and a bias has one number an output.
    """
    return 4 * D * D


@mistaken_value
def no_biases():
    """The matrices are right; the biases are missing.

    Cause: A projection adds one number to each of its outputs.
    Cure: Add 768 + 256 + 256 + 768.
    """
    return 2 * D * D + 2 * D * SHARED


@mistaken_value
def biases_of_full_width():
    """The matrices are right; the biases are too many.

    Cause: Four biases of 768 are counted.
    Cure: A bias is as long as its projection's output: for keys and values
        256.
    """
    return 2 * D * D + 2 * D * SHARED + 4 * D


@mistaken_value
def no_output_projection():
    """These are the three projections inward.

    Cause: W_o is missing.
    Cure: Add 768 × 768 and its bias.
    """
    return D * D + D + 2 * (D * SHARED + SHARED)


@mistaken_value
def queries_shared_too():
    """Too few: the queries are cut down as well.

    Cause: W_q is counted as 768 × 256.
    Cure: There are still twelve query heads.
    """
    return D * D + D + 3 * (D * SHARED + SHARED)


@mistaken_value
def only_keys_shared():
    """Too many: the values are not cut down.

    Cause: W_v is counted as 768 × 768.
    Cure: Key and value heads are shared together: both are 768 × 256.
    """
    return 3 * (D * D + D) + D * SHARED + SHARED


@mistaken_value
def group_for_number():
    """Too few: three key heads are counted.

    Cause: 12 / 4 = 3 is how many query heads share one key head.
    Cure: There are four key heads, of 64 features each: 256.
    """
    three = D // H * (H // KV)
    return 2 * (D * D + D) + 2 * (D * three + three)


@mistaken_value
def one_head_only():
    """Too few: a single key head is counted.

    Cause: W_k and W_v are counted as 768 × 64.
    Cure: Four heads of 64: 768 × 256.
    """
    return 2 * (D * D + D) + 2 * (D * 64 + 64)


PARAMETERS = prediction(
    "multihead/parameters",
    asks="parameters of 768 features, 12 heads, 4 key heads, with biases",
    solution=2 * (D * D + D) + 2 * (D * SHARED + SHARED),
    mistakes=(
        no_sharing,
        no_sharing_and_no_biases,
        no_biases,
        biases_of_full_width,
        no_output_projection,
        queries_shared_too,
        only_keys_shared,
        group_for_number,
        one_head_only,
    ),
)
