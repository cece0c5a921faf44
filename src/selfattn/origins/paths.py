"""How far it is from one token to another, and how long all must wait.

Counted for the five ways of connecting n tokens that the chapter compares.
A *hop* is one operation that needs the result of the one before: a cell of a
recurrent network, a layer of convolution, of attention, or a dense one.
Convolutions are causal here, as reading is: they see their own token and
kernel - 1 before it, in a dilated stack kernel^l apart in layer l.
"""

from typing import Literal

from selfattn.signatures import Count, Positive, checked

Architecture = Literal[
    "recurrent", "convolution", "dilated", "attention", "dense"
]


@checked
def hops(
    architecture: Architecture, distance: Count, *, kernel: Positive = 3
) -> int:
    """How many hops it takes until an output has heard a token.

    Args:
        architecture: how the tokens are connected.
        distance: how far the token stands before the output; 0 is the
            output's own.
        kernel: how many tokens a convolution sees.

    Raises:
        ValueError: if a convolution that sees one token is to hear another.

    Reference: Vaswani et al. (2017), table 1, with the constants.

    >>> [hops("recurrent", d) for d in (0, 1, 26)]
    [1, 2, 27]
    >>> [hops("convolution", d) for d in (0, 1, 26)]
    [1, 1, 13]
    >>> [hops("dilated", d) for d in (0, 1, 26)]
    [1, 1, 3]
    >>> hops("attention", 26)
    1
    """
    if architecture in ("attention", "dense"):
        return 1
    if architecture == "recurrent":
        return distance + 1
    if kernel == 1 and distance > 0:
        raise ValueError(
            "a convolution hears other tokens only if its kernel is at "
            f"least 2, but kernel={kernel} and distance={distance}"
        )
    if architecture == "convolution":
        return max(1, -(-distance // max(1, kernel - 1)))
    layers, reached = 1, kernel - 1
    while reached < distance:  # each reaches as far as all before, and more
        reached += (kernel - 1) * kernel**layers
        layers += 1
    return layers


@checked
def sequential_steps(
    architecture: Architecture, n: Positive, *, kernel: Positive = 3
) -> int:
    """How many hops wait for each other until the last output is whole.

    That is until it has heard the first of ``n`` tokens. Within a hop
    everything may be computed at once, its sums aside.

    >>> [sequential_steps("recurrent", n) for n in (1, 64, 128)]
    [1, 64, 128]
    >>> [sequential_steps("dilated", n, kernel=4) for n in (1, 64, 128)]
    [1, 3, 4]
    """
    return hops(architecture, n - 1, kernel=kernel)


@checked
def parameters(
    architecture: Architecture,
    n: Positive,
    d: Positive,
    *,
    kernel: Positive = 3,
) -> int:
    """How many weights one layer has, biases left out.

    Args:
        architecture: how the tokens are connected; "recurrent" is the plain
            network with two matrices, of which an LSTM has four times and a
            GRU three times as many, "dense" one matrix from all numbers of
            the sequence to all.
        n: how many tokens there are.
        d: features of a token, in and out.
        kernel: how many tokens a convolution sees.

    >>> [parameters(a, 4, 8) for a in ("attention", "dense")]
    [256, 1024]
    """
    return {
        "recurrent": 2 * d * d,
        "convolution": kernel * d * d,
        "dilated": kernel * d * d,
        "attention": 4 * d * d,
        "dense": n * n * d * d,
    }[architecture]


@checked
def operations(
    architecture: Architecture,
    n: Positive,
    d: Positive,
    *,
    kernel: Positive = 3,
) -> int:
    """How many multiplications and additions one layer's products take.

    Every weight is used once for each token, but a dense layer's once in
    all; attention has the scores and the sums of values besides.

    >>> operations("convolution", 64, 64)
    1572864
    """
    weights = parameters(architecture, n, d, kernel=kernel)
    if architecture == "dense":
        return 2 * weights
    pairs = 4 * n * n * d if architecture == "attention" else 0
    return 2 * n * weights + pairs
