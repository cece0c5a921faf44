"""A prediction: the weights of one layer of a vision transformer, in MiB.

32 images of 14 × 14 patches, 12 heads, float32.
"""

from selfattn.doctor.exercise import prediction

BATCH, HEADS, PATCHES = 32, 12, 14 * 14
TABLE = 4 * PATCHES**2  # bytes of one table
MIB = 2**20

BYTES = prediction(
    "cost/bytes",
    asks="MiB of attention weights: 32 images, 12 heads, 196 patches, float32",
    solution=BATCH * HEADS * TABLE / MIB,
    tolerance=0.05,
)


@BYTES.mistake
def megabytes():
    """These are megabytes.

    Cause: The bytes were divided by a million.
    Cure: A mebibyte has 1024 × 1024 bytes.
    """
    return BATCH * HEADS * TABLE / 1e6


@BYTES.mistake
def one_table():
    """That is one head of one image.

    Cause: It is what source 2's table prints.
    Cure: Times 12 heads, times 32 images.
    """
    return TABLE / MIB


@BYTES.mistake
def one_image():
    """That is one image.

    Cause: The batch is missing.
    Cure: Times 32.
    """
    return HEADS * TABLE / MIB


@BYTES.mistake
def one_head():
    """That is one head.

    Cause: The heads are missing. They share the features, but each has a
        table of its own.
    Cure: Times 12.
    """
    return BATCH * TABLE / MIB


@BYTES.mistake
def half_precision():
    """That is float16 or bfloat16.

    Cause: Two bytes a number.
    Cure: float32 has four.
    """
    return BATCH * HEADS * TABLE / MIB / 2


@BYTES.mistake
def scores_and_weights():
    """That is both tables of a naive pass.

    Cause: The scores are counted, too.
    Cure: The weights alone: half of it.
    """
    return 2 * BATCH * HEADS * TABLE / MIB


@BYTES.mistake
def twelve_layers():
    """That is the whole model of twelve layers.

    Cause: It was multiplied by 12 twice, for heads and for layers.
    Cure: One layer.
    """
    return 12 * BATCH * HEADS * TABLE / MIB


@BYTES.mistake
def numbers_not_bytes():
    """That is how many numbers there are, not bytes.

    Cause: The size of a number is missing.
    Cure: Times four.
    """
    return BATCH * HEADS * TABLE / MIB / 4
