"""A prediction: the weights of one layer of a vision transformer, in MiB.

8 images of 24 × 24 patches, 16 heads, float32.
"""

from selfattn.doctor.exercise import mistaken_value, prediction

BATCH, HEADS, PATCHES = 8, 16, 24 * 24
TABLE = 4 * PATCHES**2  # bytes of one table
MIB = 2**20


@mistaken_value
def megabytes():
    """These are megabytes.

    Cause: The bytes were divided by a million.
    Cure: A mebibyte has 1024 × 1024 bytes.
    """
    return BATCH * HEADS * TABLE / 1e6


@mistaken_value
def one_table():
    """That is one head of one image.

    Cause: It is what a table by length alone prints.
    Cure: Times 16 heads, times 8 images.
    """
    return TABLE / MIB


@mistaken_value
def one_image():
    """That is one image.

    Cause: The batch is missing.
    Cure: Times 8.
    """
    return HEADS * TABLE / MIB


@mistaken_value
def one_head():
    """That is one head.

    Cause: The heads are missing. They share the features, but each has a
        table of its own.
    Cure: Times 16.
    """
    return BATCH * TABLE / MIB


@mistaken_value
def half_precision():
    """That is float16 or bfloat16.

    Cause: Two bytes a number.
    Cure: float32 has four.
    """
    return BATCH * HEADS * TABLE / MIB / 2


@mistaken_value
def scores_and_weights():
    """That is both tables of a naive pass.

    Cause: The scores are counted, too.
    Cure: The weights alone: half of it.
    """
    return 2 * BATCH * HEADS * TABLE / MIB


@mistaken_value
def all_layers():
    """That is a whole model of 24 layers.

    Cause: It was multiplied by layers, too.
    Cure: One layer.
    """
    return 24 * BATCH * HEADS * TABLE / MIB


@mistaken_value
def numbers_not_bytes():
    """That is how many numbers there are, not bytes.

    Cause: The size of a number is missing.
    Cure: Times four.
    """
    return BATCH * HEADS * TABLE / MIB / 4


BYTES = prediction(
    "cost/bytes",
    asks="MiB of attention weights: 8 images, 16 heads, 576 patches, float32",
    solution=BATCH * HEADS * TABLE / MIB,
    tolerance=0.05,
    mistakes=(
        megabytes,
        one_table,
        one_image,
        one_head,
        half_precision,
        scores_and_weights,
        all_layers,
        numbers_not_bytes,
    ),
)
