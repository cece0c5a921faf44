"""A prediction: how many dilated layers hear a thousand tokens."""

from selfattn.doctor.exercise import mistaken_value, prediction
from selfattn.origins.paths import hops

N, KERNEL = 1000, 3


@mistaken_value
def rounded_down():
    """That many layers hear 729 tokens.

    Cause: The logarithm of 1,000 to the base 3 is 6.3, rounded down.
    Cure: Round up: whole layers, and the seventh is needed.
    """
    return 6


@mistaken_value
def not_dilated():
    """That is a stack of neighbours.

    Cause: Every layer was taken to go two places back.
    Cure: Layer l sees tokens 3^l apart, so the reach is tripled each time.
    """
    return hops("convolution", N - 1, kernel=KERNEL)


@mistaken_value
def one_by_one():
    """That is a recurrent network's way.

    Cause: One hop was counted for each token.
    Cure: Count layers, each of which hears three times as far.
    """
    return hops("recurrent", N - 1)


@mistaken_value
def kernels_beside_each_other():
    """That many kernels lie beside each other in one layer.

    Cause: 1,000 was divided by 3.
    Cure: Layers stand on each other, and their reaches multiply.
    """
    return 334


@mistaken_value
def to_the_base_two():
    """That would be a kernel of 2.

    Cause: The reach was doubled with each layer.
    Cure: A kernel of 3 triples it.
    """
    return hops("dilated", N - 1, kernel=2)


@mistaken_value
def in_one_step():
    """That is attention's way.

    Cause: One layer was taken to hear everything.
    Cure: One layer of this convolution hears three tokens.
    """
    return 1


LAYERS = prediction(
    "origins/layers",
    asks="layers of a dilated causal convolution, kernel 3, 1,000 tokens",
    solution=hops("dilated", N - 1, kernel=KERNEL),
    mistakes=(
        rounded_down,
        not_dilated,
        one_by_one,
        kernels_beside_each_other,
        to_the_base_two,
        in_one_step,
    ),
)
