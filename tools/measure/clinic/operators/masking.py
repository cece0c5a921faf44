"""Mistakes with masks: what they mean, when they are laid on, the diagonal."""

import ast
import re
from collections.abc import Iterator

from tools.measure.clinic.operators import ATTENDING, operator
from tools.measure.clinic.operators.syntax import (
    binary,
    body,
    call,
    is_mask,
    keyword,
    operand,
    options,
    says,
    sides,
    text,
    with_body,
    with_option,
)

MASKED = ATTENDING | {"softmax"}
LOW = r"inf\b|-1e|finfo|-10000|\.min\b"


def is_fill(node: ast.AST) -> bool:
    """Whether it fills scores where a mask says so."""
    return call(node, "masked_fill") and len(options(node)) == 2


def is_low(node: ast.AST) -> bool:
    """Whether what it fills in is so low that softmax makes nothing of it."""
    return is_fill(node) and bool(re.search(LOW, text(options(node)[1])))


def is_bias(node: ast.AST) -> bool:
    """Whether it fills what is added to scores, and not the scores."""
    return says(operand(node), "bias|zeros|mask")


def wipes(node: ast.AST) -> bool:
    """Whether it wipes out rows that may see nothing, which is no mask."""
    mask, fill = map(text, options(node))
    return says(mask, r"any\(") or fill in ("0", "0.0")


@operator(MASKED, convention=True)
def mask_upside_down(node: ast.AST) -> Iterator[str]:
    """What is to be seen is hidden, and the reverse."""
    if is_fill(node):
        mask, fill = map(text, options(node))
        yield f"({operand(node)}).masked_fill(~({mask}), {fill})"
    if call(node, "where") and len(node.args) == 3:
        mask, one, other = map(text, node.args)
        yield f"torch.where({mask}, {other}, {one})"
    if call(node, "scaled_dot_product_attention"):
        given = keyword(node, "attn_mask")
        if given:
            mask = text(given.value)
            flipped = f"None if ({mask}) is None else ~({mask})"
            yield with_option(node, 3, "attn_mask", flipped)


@operator(MASKED)
def mask_not_used(node: ast.AST) -> Iterator[str]:
    """Everything is seen, whatever the mask says."""
    if is_fill(node) and not wipes(node):
        yield operand(node)
    if call(node, "where") and len(node.args) == 3:
        yield text(node.args[1])
    # x + self.attend(x, mask) would lose the whole sublayer.
    own = binary(node, ast.Add) and text(node.right).startswith("self.")
    if binary(node, ast.Add) and is_mask(node.right) and not own:
        yield text(node.left)
    if call(node, "scaled_dot_product_attention"):
        given = keyword(node, "attn_mask")
        if given:
            yield with_option(node, 3, "attn_mask", "None")


@operator(MASKED)
def nothing_is_added(node: ast.AST) -> Iterator[str]:
    """To forbidden scores nothing is added, as to all others."""
    if is_low(node) and is_bias(node):
        mask = text(options(node)[0])
        yield f"({operand(node)}).masked_fill({mask}, 0.0)"
        yield f"({operand(node)}).masked_fill({mask}, 1e-37)"


@operator(MASKED)
def filled_with_zero(node: ast.AST) -> Iterator[str]:
    """Forbidden scores become zero, which is a score like another."""
    if is_low(node) and not is_bias(node):
        mask = text(options(node)[0])
        yield f"({operand(node)}).masked_fill({mask}, 0.0)"


@operator(MASKED)
def filled_with_too_little(node: ast.AST) -> Iterator[str]:
    """Forbidden scores become minus nine, which some scores are."""
    if is_low(node):
        mask = text(options(node)[0])
        yield f"({operand(node)}).masked_fill({mask}, -9.0)"


@operator(MASKED)
def filled_with_a_tiny_number(node: ast.AST) -> Iterator[str]:
    """A number that is small, and not low, as float.min of C."""
    if is_low(node) and not is_bias(node):
        mask = text(options(node)[0])
        yield f"({operand(node)}).masked_fill({mask}, 1e-37)"


@operator(MASKED)
def filled_with_a_billion(node: ast.AST) -> Iterator[str]:
    """Minus a billion, which float16 does not have."""
    if is_fill(node) and re.search("inf|finfo", text(options(node)[1])):
        mask = text(options(node)[0])
        yield f"({operand(node)}).masked_fill({mask}, -1e9)"


@operator(ATTENDING)
def mask_after_softmax(node: ast.AST) -> Iterator[str]:
    """Weights are wiped out, and the rest of the row is not made larger."""
    if call(node, "softmax"):
        owner = getattr(node.func, "value", node)
        inner = node.args[0] if node.args else owner
        if is_fill(inner):
            mask, x = text(options(inner)[0]), operand(inner)
            yield f"torch.softmax({x}, dim=-1).masked_fill({mask}, 0.0)"
    statements = body(node)
    for i, first in enumerate(statements):
        name = masks(first)
        for j in range(i + 1, len(statements)):
            made = weights_of(statements[j], name)
            if made:
                later = renamed(first, name, made)
                rest = statements[j + 1 :]
                between = statements[i + 1 : j + 1]
                order = [*statements[:i], *between, *later, *rest]
                yield with_body(node, order)
                break


def masks(statement: ast.stmt) -> str:
    """The name of the scores that a statement masks; "" if it does not."""
    inner = statement.body[-1] if isinstance(statement, ast.If) else statement
    if (
        isinstance(inner, ast.Assign)
        and is_fill(inner.value)
        and isinstance(inner.targets[0], ast.Name)
        and text(inner.targets[0]) == operand(inner.value)
    ):
        return text(inner.targets[0])
    return ""


def weights_of(statement: ast.stmt, scores: str) -> str:
    """The name that a softmax of the scores gets; "" if it gets none."""
    if (
        scores
        and isinstance(statement, ast.Assign)
        and call(statement.value, "softmax")
        and operand(statement.value) == scores
        and isinstance(statement.targets[0], ast.Name)
    ):
        return statement.targets[0].id
    return ""


def renamed(statement: ast.stmt, was: str, becomes: str) -> list[ast.stmt]:
    """A statement that masks weights with zero, not scores with little."""
    words = re.sub(rf"\b{was}\b", becomes, text(statement))
    words = re.sub(
        r"float\('-inf'\)|-(math|torch)\.inf|-1e\d+|torch\.finfo\(.*?\)\.min",
        "0.0",
        words,
    )
    return ast.parse(words).body


@operator(MASKED)
def mask_on_its_side(node: ast.AST) -> Iterator[str]:
    """Key i sees query j, where query i should see key j."""
    if is_fill(node):
        mask, fill = map(text, options(node))
        yield f"({operand(node)}).masked_fill(({mask}).mT, {fill})"
    if binary(node, ast.Add) and re.fullmatch(
        r"\w*(mask|bias)\w*", text(node.right)
    ):
        left, right = sides(node)
        yield f"{left} + {right}.mT"


@operator(MASKED)
def one_mask_for_the_batch(node: ast.AST) -> Iterator[str]:
    """The first text's mask is that of all."""
    named = r"mask\b|allowed|blocked|hidden"
    if is_fill(node) and says(options(node)[0], named) and not wipes(node):
        mask, fill = map(text, options(node))
        yield f"({operand(node)}).masked_fill(({mask})[:1], {fill})"
    if isinstance(node, ast.Subscript) and says(node.value, "(mask|padding)$"):
        axes = text(node.slice).strip("()")
        if "None" in axes and ":" in axes:
            yield f"{text(node.value)}[:1][{axes}]"


@operator(ATTENDING | {"softmax"}, convention=True)
def empty_rows_otherwise(node: ast.AST) -> Iterator[str]:
    """A query that may see nothing gets something else."""
    if call(node, "nan_to_num"):
        yield operand(node)
    if is_fill(node) and wipes(node):
        yield operand(node)
    if is_fill(node) and "inf" in text(options(node)[1]):
        x = operand(node)
        yield text(node).replace(
            text(options(node)[1]), f"torch.finfo(({x}).dtype).min"
        )
