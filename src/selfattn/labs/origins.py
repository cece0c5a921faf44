"""The lab of the chapter on origins: how far one token is from another.

The reader chooses how tokens are connected, a kernel, a length, and two
positions, and sees the shortest way from the one to the other, how many hops
it has, and how many of them wait for each other.
"""

from typing import NamedTuple

from matplotlib.figure import Figure

from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice, Whole
from selfattn.origins.paths import (
    Architecture,
    hops,
    operations,
    parameters,
    sequential_steps,
)

ARCHITECTURES = ["recurrent", "convolution", "dilated", "attention", "dense"]
WIDTH = 64  # features of a token, for the two counts of one layer
FEWEST, MOST = 2, 16  # tokens

Node = tuple[int, int]  # layer, from 0 below, and position, from 0


class Seen(NamedTuple):
    """What the lab shows."""

    hops: int  # from the token to the output
    steps: int  # that wait for each other, for all n tokens
    heard: int  # how many tokens the output hears after so many hops
    parameters: int  # of one layer
    operations: int  # of one layer
    path: list[Node]  # from the token's place below to the output's above
    edges: list[tuple[Node, Node]]  # all ways to the output


class OriginsLab(Lab):
    """One output, one token, and the way between them.

    Attributes:
        architecture: how tokens are connected.
        kernel: how many tokens a convolution sees, its own the last.
        n: how many tokens there are.
        output: the output's position, from 0.
        token: the token's, at most the output's.
    """

    architecture = Choice("recurrent", ARCHITECTURES)
    kernel = Choice(3, [2, 3, 4, 5])
    n = Whole(12, FEWEST, MOST)
    output = Whole(11, 0, MOST - 1, of="n", plus=-1)
    token = Whole(1, 0, MOST - 1, of="output")

    def seen(self) -> Seen:
        """What the page shows, computed by the package."""
        return seen(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.seen()
        many = "hop" if now.hops == 1 else "hops"
        return (
            f"A network of {self.n} tokens, connected by {self.architecture}. "
            f"From token {self.token + 1} to output {self.output + 1} it is "
            f"{now.hops} {many}; the output has then heard {now.heard} "
            f"tokens. For all {self.n} tokens, {now.steps} must wait for each "
            "other."
        )

    def figure(self) -> Figure:
        """The network and the way through it, as it is now."""
        figure = Figure(figsize=(5.4, 2.9), layout="constrained")
        ax, now = figure.subplots(), self.seen()
        for (low, i), (high, j) in now.edges:
            ax.plot([i + 1, j + 1], [low, high], color="lightgrey", lw=1)
        layers, places = zip(*now.path, strict=True)
        ax.plot([i + 1 for i in places], layers, color="black", marker="o")
        top = now.path[-1][0]
        for layer in range(top + 1):
            ax.scatter(range(1, self.n + 1), [layer] * self.n, s=8, c="grey")
        ax.set(xlabel="position", ylabel="layer", yticks=range(top + 1))
        return figure


def seen(
    *, architecture: Architecture, kernel: int, n: int, output: int, token: int
) -> Seen:
    """Count the hops, and find them.

    The arguments are the lab's settings.
    """
    many = hops(architecture, output - token, kernel=kernel)
    layers = 1 if architecture == "recurrent" else many
    edges = edges_to(architecture, kernel, n, (layers, output))
    below = {place for (layer, place), _ in edges if layer == 0}
    sizes = {"n": n, "d": WIDTH, "kernel": kernel}
    return Seen(
        many,
        sequential_steps(architecture, n, kernel=kernel),
        len(below),
        parameters(architecture, **sizes),
        operations(architecture, **sizes),
        way(architecture, kernel, token, (layers, output)),
        edges,
    )


def sources(architecture: str, kernel: int, n: int, node: Node) -> list[Node]:
    """What a node is made of, from its own position backwards."""
    layer, place = node
    if architecture == "recurrent":
        before = [(1, place - 1)] if place else []
        return [(0, place), *before]
    if architecture == "dense":  # it knows of no order
        return [(layer - 1, j) for j in reversed(range(n))]
    if architecture == "attention":
        return [(layer - 1, j) for j in range(place, -1, -1)]
    apart = kernel ** (layer - 1) if architecture == "dilated" else 1
    back = (place - apart * i for i in range(kernel))
    return [(layer - 1, j) for j in back if j >= 0]


def edges_to(
    architecture: str, kernel: int, n: int, node: Node
) -> list[tuple[Node, Node]]:
    """All edges by which anything reaches a node, from the top down."""
    edges, waiting, known = [], [node], {node}
    while waiting:
        end = waiting.pop(0)
        for start in sources(architecture, kernel, n, end):
            edges.append((start, end))
            if start[0] and start not in known:
                known.add(start)
                waiting.append(start)
    return edges


def way(architecture: str, kernel: int, token: int, node: Node) -> list[Node]:
    """The nodes from a token to an output: in each layer the farthest."""
    path = [node]
    while path[0][0] > 0:
        layer, place = path[0]
        if architecture == "recurrent":
            step = (0, place) if place == token else (1, place - 1)
        elif architecture in ("attention", "dense"):
            step = (0, token)
        else:
            apart = kernel ** (layer - 1) if architecture == "dilated" else 1
            taken = min(kernel - 1, (place - token) // apart)
            step = (layer - 1, place - apart * taken)
        path.insert(0, step)
    return path
