"""Mistakes of kernels that go through keys in tiles, or by a state."""

import ast
import re
from collections.abc import Iterator

from tools.measure.clinic.operators import operator
from tools.measure.clinic.operators.syntax import (
    arguments,
    binary,
    call,
    number,
    operand,
    option,
    taken,
    text,
)

KERNELS = frozenset({"efficient"})
FADING = r"fading|torch\.exp\(top - \w+\)"


@operator(KERNELS)
def not_rescaled(node: ast.AST) -> Iterator[str]:
    """What was gathered under a smaller maximum counts too much."""
    if binary(node, ast.Mult) and re.fullmatch(FADING, text(node.right)):
        yield text(node.left)


@operator(KERNELS)
def last_tile_left_out(node: ast.AST) -> Iterator[str]:
    """What does not fill a tile is not seen."""
    if call(node, "range") and len(node.args) == 3:
        start, stop, step = map(text, node.args)
        yield f"range({start}, max(({stop}) - ({step}) + 1, 1), {step})"


@operator(KERNELS)
def first_tile_left_out(node: ast.AST) -> Iterator[str]:
    """The sum begins at the second."""
    if call(node, "range") and len(node.args) == 1:
        yield f"range(min(1, {text(node.args[0])} - 1), {text(node.args[0])})"


@operator(KERNELS)
def maximum_not_renewed(node: ast.AST) -> Iterator[str]:
    """The maximum is that of the last tile alone."""
    if call(node, "maximum"):
        yield from arguments(node)[-1:]
    if isinstance(node, ast.Assign) and text(node) in (
        "top = new_top",
        "top = higher",
    ):
        yield "pass"


@operator(KERNELS)
def each_tile_its_own_softmax(node: ast.AST) -> Iterator[str]:
    """All tiles count alike."""
    if (
        call(node, "exp")
        and "new_top" in text(node)
        and "scores" in text(node)
    ):
        yield "torch.exp(scores - scores.amax(dim=-1, keepdim=True))"


@operator(KERNELS)
def other_feature_map(node: ast.AST) -> Iterator[str]:
    """The map of keys is another, or lacks what keeps it positive."""
    if binary(node, ast.Add) and number(node.right) in (1, 1e-3):
        yield text(node.left)
    if call(node, "elu", "relu"):
        x = taken(node) if arguments(node) else operand(node)
        yield f"({x}).abs()"


@operator(KERNELS)
def keys_not_mapped(node: ast.AST) -> Iterator[str]:
    """The map is laid on the queries alone."""
    if isinstance(node, ast.Call) and text(node) == "feature_map(k)":
        yield "k"


@operator(KERNELS)
def state_comes_late(node: ast.AST) -> Iterator[str]:
    """A token does not see itself, or only itself."""
    if isinstance(node, ast.For):
        steps = list(node.body)
        for i, step in enumerate(steps):
            if text(step).startswith("state = state +"):
                new = [*steps[:i], *steps[i + 1 : -1], *steps[-1:], step]
                made = ast.parse(text(node)).body[0]
                made.body = new
                yield ast.unparse(ast.fix_missing_locations(made))
                yield text(node).replace(
                    "state = state +", "state = 0 * state +"
                )


@operator(KERNELS)
def future_tiles_not_left_out(node: ast.AST) -> Iterator[str]:
    """Tiles on the diagonal are not masked, or are left out."""
    if isinstance(node, ast.If) and "causal" in text(node.test):
        yield "pass"
    if (
        binary(node, ast.Add)
        and text(node) == "torch.arange(i, min(i + tile, n)) + m - n"
    ):
        yield "torch.arange(i, min(i + tile, n))"


@operator(KERNELS)
def edges_not_hidden(node: ast.AST) -> Iterator[str]:
    """What was padded is seen."""
    if call(node, "masked_fill"):
        mask = option(node, 0, "mask")
        if mask is not None and text(mask) == "outside":
            yield text(node.func.value)
    if binary(node, ast.BitOr):
        yield text(node.left)
        yield text(node.right)
