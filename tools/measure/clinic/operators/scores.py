"""Mistakes with scores and weights: scale, axis, softmax."""

import ast
import re
from collections.abc import Iterator

from tools.measure.clinic.operators import ATTENDING, operator
from tools.measure.clinic.operators.syntax import (
    arguments,
    binary,
    call,
    is_method,
    keyword,
    number,
    operand,
    options,
    says,
    sides,
    text,
    with_option,
    without,
)

SOFT = ATTENDING | {"softmax"}
SCALE = r"sqrt\(|\*\* ?\(?-?0\.5|\bscal(e|ing)\b|temperature|\bfactor\b"


def is_scale(node: ast.AST) -> bool:
    """Whether it is what scores are divided by or multiplied with."""
    return bool(re.search(SCALE, text(node).lower())) and len(text(node)) < 45


def is_softmax(node: ast.AST) -> bool:
    """Whether it calls a softmax of PyTorch's."""
    return call(node, "softmax")


@operator(ATTENDING)
def scale_left_out(node: ast.AST) -> Iterator[str]:
    """Scores go into softmax as they are."""
    if binary(node, ast.Div, ast.Mult) and is_scale(node.right):
        yield text(node.left)
    if call(node, "div") and options(node) and is_scale(options(node)[0]):
        yield operand(node)
    if call(node, "scaled_dot_product_attention"):
        yield with_option(node, 9, "scale", "1.0")


@operator(ATTENDING)
def scale_by_the_width_itself(node: ast.AST) -> Iterator[str]:
    """Divided by d, where its root is meant."""
    if call(node, "sqrt") and text(node).startswith("math"):
        yield operand(node)
    if binary(node, ast.Pow) and number(node.right) in (0.5, -0.5):
        yield f"({text(node.left)}) ** {2 * number(node.right)}"


@operator(ATTENDING)
def scale_upside_down(node: ast.AST) -> Iterator[str]:
    """Multiplied by the root, where it is to be divided, or the reverse."""
    if binary(node, ast.Div) and is_scale(node.right):
        left, right = sides(node)
        yield f"{left} * {right}"
    if binary(node, ast.Mult) and is_scale(node.right):
        left, right = sides(node)
        yield f"{left} / {right}"


@operator(ATTENDING)
def scale_of_another_width(node: ast.AST) -> Iterator[str]:
    """The root of some other number: of tokens, of the whole model."""
    if not (call(node, "sqrt") or binary(node, ast.Pow)) or not is_scale(node):
        return
    whole = text(node)
    for was, becomes in (
        ("shape[-1]", "shape[-2]"),
        ("size(-1)", "size(-2)"),
        ("shape[3]", "shape[1]"),
        ("size(3)", "size(1)"),
        ("shape[2]", "shape[1]"),
        ("dim // num_heads", "dim"),
        ("size // self.h", "size"),
        ("self.d_k", "x.size(-1)"),
        ("self.head_dim", "x.size(-1)"),
    ):
        if was in whole:
            yield whole.replace(was, becomes)


@operator(SOFT)
def softmax_over_another_axis(node: ast.AST) -> Iterator[str]:
    """The columns sum to one, or something else does."""
    if not is_softmax(node):
        return
    axis = keyword(node, "dim")
    axis = axis.value if axis else (options(node) or [None])[0]
    for other in (-2, 1):
        if axis is not None and number(axis) not in (None, other):
            yield with_option(node, 0, "dim", str(other))


@operator(ATTENDING)
def softmax_left_out(node: ast.AST) -> Iterator[str]:
    """Scores are taken for weights."""
    if is_softmax(node):
        yield operand(node)


@operator(ATTENDING)
def sigmoid_for_softmax(node: ast.AST) -> Iterator[str]:
    """Each weight for itself."""
    if is_softmax(node):
        yield f"({operand(node)}).sigmoid()"


@operator(SOFT | {"efficient"})
def largest_not_taken_off(node: ast.AST) -> Iterator[str]:
    """Exponentials of large scores overflow."""
    if (
        binary(node, ast.Sub)
        and says(node.right, r"max\(", r"\btop\b", "logsumexp")
        and "logsumexp" not in text(node.right)
    ):
        yield text(node.left)
    if is_softmax(node) and not keyword(node, "dtype"):
        powers = f"({operand(node)}).exp()"
        yield f"({powers} / {powers}.sum(-1, keepdim=True))"


@operator(SOFT)
def sum_over_another_axis(node: ast.AST) -> Iterator[str]:
    """The sum, or the largest, is that of a column."""
    if call(node, "sum", "amax", "max", "logsumexp"):
        axis = keyword(node, "dim")
        if axis is not None and text(axis.value) in ("-1", "dim", "self.dim"):
            yield with_option(node, 0, "dim", "-2")


@operator(frozenset({"softmax", "efficient"}))
def never_divided(node: ast.AST) -> Iterator[str]:
    """Exponentials are taken for weights."""
    if binary(node, ast.Div) and says(node.right, r"\.sum\(", "total", "norm"):
        yield text(node.left)
    if binary(node, ast.Mult) and says(node.right, "reciprocal"):
        yield text(node.left)


@operator(ATTENDING)
def weights_detached(node: ast.AST) -> Iterator[str]:
    """Nothing is learnt through the weights."""
    if is_softmax(node):
        yield f"({text(node)}).detach()"


@operator(ATTENDING)
def weights_on_their_side(node: ast.AST) -> Iterator[str]:
    """What a key gives goes to its query, and the reverse."""
    if binary(node, ast.MatMult) and says(
        node.left, "weight", "attn", r"\batt\b", "wei", "softmax", "probs"
    ):
        left, right = sides(node)
        yield f"{left}.mT @ {right}"
    if call(node, "matmul", "bmm") and not is_method(node):
        one, *rest = arguments(node) or [text(node)]
        if says(one, "weight", "attn", "probs", "softmax"):
            yield from (f"torch.matmul(({one}).mT, {x})" for x in rest[:1])


@operator(ATTENDING)
def cosine_of_the_scores(node: ast.AST) -> Iterator[str]:
    """Queries are brought to length one."""
    if binary(node, ast.MatMult) and re.fullmatch(r"q\w*", text(node.left)):
        left, right = sides(node)
        yield f"({left} / {left}.norm(dim=-1, keepdim=True)) @ {right}"


@operator(ATTENDING)
def scaled_twice(node: ast.AST) -> Iterator[str]:
    """The scale is applied to the queries, and to the scores again."""
    if binary(node, ast.Div, ast.Mult) and is_scale(node.right):
        sign = "/" if isinstance(node.op, ast.Div) else "*"
        left, right = sides(node)
        yield f"{left} {sign} {right} {sign} {right}"


@operator(ATTENDING)
def weights_used_before_they_are_made(node: ast.AST) -> Iterator[str]:
    """The axis of softmax is not told, and PyTorch guesses or fails."""
    if is_softmax(node) and keyword(node, "dim") and not is_method(node):
        yield (
            with_option(node, 0, "dim", "0")
            if len(node.args) == 1
            else without(node, "dim")
        )
