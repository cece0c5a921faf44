"""`mebibytes(batch, n_heads, n_q, n_k, itemsize)`: a layer's weights."""

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.exercises.cost import number_from, whole
from selfattn.doctor.probes import Probe

NAMES = ("batch", "n_heads", "n_q", "n_k", "itemsize")


def sizes(*numbers: int) -> dict:
    """The five inputs, by name."""
    return {n: whole(x) for n, x in zip(NAMES, numbers, strict=True)}


def mebibytes(batch, n_heads, n_q, n_k, itemsize):
    """The solution."""
    return batch * n_heads * n_q * n_k * itemsize / 2**20


@mistake
def one_table_in_megabytes(batch, n_heads, n_q, n_k, itemsize):
    """It is right for one table, and in megabytes.

    Cause: The size of one table is what many a page prints.
    Cure: How many tables has a layer, and how many bytes has a MiB?
    """
    return n_q * n_k * itemsize / 1000**2


@mistake
def one_table(batch, n_heads, n_q, n_k, itemsize):
    """The unit is right. It is one head of one sequence.

    Cause: Batch and heads are missing.
    Cure: Multiply by both: each head of each sequence has its own table.
    """
    return n_q * n_k * itemsize / 2**20


@mistake
def megabytes(batch, n_heads, n_q, n_k, itemsize):
    """Nearly: yours is 4.9 per cent too large.

    Cause: Divided by a million, which gives megabytes.
    Cure: A mebibyte is 2**20 bytes.
    """
    return batch * n_heads * n_q * n_k * itemsize / 1e6


@mistake
def no_heads(batch, n_heads, n_q, n_k, itemsize):
    """Too small by the number of heads.

    Cause: Heads share the features, so they seem to cost nothing. But each
        has a table of its own.
    Cure: Times n_heads.
    """
    return batch * n_q * n_k * itemsize / 2**20


@mistake
def no_batch(batch, n_heads, n_q, n_k, itemsize):
    """Too small by the size of the batch.

    Cause: The batch is missing.
    Cure: Times batch.
    """
    return n_heads * n_q * n_k * itemsize / 2**20


@mistake
def no_heads_and_megabytes(batch, n_heads, n_q, n_k, itemsize):
    """The heads are missing, and these are megabytes.

    Cause: Two of three faults are left.
    Cure: Times n_heads, and divided by 2**20.
    """
    return batch * n_q * n_k * itemsize / 1e6


@mistake
def no_batch_and_megabytes(batch, n_heads, n_q, n_k, itemsize):
    """The batch is missing, and these are megabytes.

    Cause: Two of three faults are left.
    Cure: Times batch, and divided by 2**20.
    """
    return n_heads * n_q * n_k * itemsize / 1e6


@mistake
def kibibytes(batch, n_heads, n_q, n_k, itemsize):
    """These are KiB.

    Cause: Divided by 1024 once.
    Cure: Divide by 2**20.
    """
    return batch * n_heads * n_q * n_k * itemsize / 1024


@mistake
def queries_squared(batch, n_heads, n_q, n_k, itemsize):
    """It is right only for as many keys as queries.

    Cause: n_q is squared.
    Cure: A row a query, a column a key: n_q times n_k.
    """
    return batch * n_heads * n_q**2 * itemsize / 2**20


@mistake
def always_four_bytes(batch, n_heads, n_q, n_k, itemsize):
    """It is right only for float32.

    Cause: The size of a number is taken to be four bytes.
    Cure: Use itemsize.
    """
    return batch * n_heads * n_q * n_k * 4 / 2**20


@mistake
def numbers_not_bytes(batch, n_heads, n_q, n_k, itemsize):
    """That is how many numbers there are, not bytes.

    Cause: itemsize is missing.
    Cure: Times itemsize.
    """
    return batch * n_heads * n_q * n_k / 2**20


@mistake
def scores_and_weights(batch, n_heads, n_q, n_k, itemsize):
    """Yours is exactly twice as much.

    Cause: The table of scores is counted, too.
    Cure: The weights alone.
    """
    return 2 * mebibytes(batch, n_heads, n_q, n_k, itemsize)


@mistake
def bits(batch, n_heads, n_q, n_k, itemsize):
    """Yours is exactly eight times as much.

    Cause: Bits are counted. itemsize is in bytes already.
    Cure: Leave the factor of 8 out.
    """
    return 8 * mebibytes(batch, n_heads, n_q, n_k, itemsize)


MEBIBYTES = Exercise(
    "cost/mebibytes",
    asks="MiB of the weights of one layer: one table a head and sequence",
    solution=mebibytes,
    use=number_from,
    probes=(
        Probe("one head of one sequence", sizes(1, 1, 1024, 1024, 4)),
        Probe("each head has a table of its own", sizes(1, 12, 196, 196, 4)),
        Probe("so has each sequence", sizes(32, 12, 196, 196, 4)),
        Probe("queries and keys may differ in number", sizes(2, 3, 1, 997, 4)),
        Probe("half precision takes half", sizes(2, 3, 128, 509, 2)),
    ),
    mistakes=(
        one_table_in_megabytes,
        one_table,
        megabytes,
        no_heads,
        no_batch,
        no_heads_and_megabytes,
        no_batch_and_megabytes,
        kibibytes,
        queries_squared,
        always_four_bytes,
        numbers_not_bytes,
        scores_and_weights,
        bits,
    ),
)
