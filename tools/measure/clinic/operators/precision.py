"""Mistakes with types, with dropout, and with what belongs to the caller."""

import ast
import re
from collections.abc import Iterator

from tools.measure.clinic.operators import ATTENDING, NORMS, operator
from tools.measure.clinic.operators.syntax import (
    arguments,
    binary,
    body,
    call,
    is_method,
    keyword,
    operand,
    options,
    says,
    taken,
    text,
    with_body,
    with_option,
    without,
)

NUMERIC = ATTENDING | NORMS | {"softmax", "rope", "positions"}


@operator(NUMERIC)
def computed_in_less(node: ast.AST) -> Iterator[str]:
    """The core is computed in float32 or half precision, and turned back."""
    if call(node, "softmax") and not keyword(node, "dtype"):
        x = operand(node)
        whole = text(node).replace(x, f"({x}).float()", 1)
        yield f"({whole}).to(({x}).dtype)"
        whole = text(node).replace(x, f"({x}).bfloat16()", 1)
        yield f"({whole}).to(({x}).dtype)"


@operator(NUMERIC)
def another_type_returned(node: ast.AST) -> Iterator[str]:
    """What comes out is float32, or of the type it was computed in."""
    if (
        call(node, "to", "type_as")
        and is_method(node)
        and says(
            options(node)[0] if options(node) else "", r"dtype$|^x$|query"
        )
    ):
        yield operand(node)
    if isinstance(node, ast.Return) and isinstance(node.value, ast.BinOp):
        yield f"return ({text(node.value)}).float()"


@operator(NUMERIC)
def written_into_the_input(node: ast.AST) -> Iterator[str]:
    """What belongs to the caller is changed."""
    if not isinstance(node, ast.FunctionDef):
        return
    names = [a.arg for a in node.args.args]
    for i, statement in enumerate(body(node)):
        if not isinstance(statement, ast.Assign):
            continue
        name, value = text(statement.targets[0]), statement.value
        if name not in names or not isinstance(value, ast.BinOp):
            continue
        if text(value.left) == name and binary(
            value, ast.Add, ast.Sub, ast.Mult
        ):
            sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
            words = f"{name} {sign[type(value.op)]}= {text(value.right)}"
            made = list(body(node))
            made[i] = ast.parse(words).body[0]
            yield with_body(node, made)


@operator(NUMERIC)
def scaled_in_place(node: ast.AST) -> Iterator[str]:
    """The queries, or the input, are written over."""
    if binary(node, ast.Mult, ast.Div) and re.fullmatch(
        r"x|q|query", text(node.left)
    ):
        method = "mul_" if isinstance(node.op, ast.Mult) else "div_"
        yield f"{text(node.left)}.{method}({text(node.right)})"
    if binary(node, ast.Add) and text(node.left) in ("x", "tokens"):
        yield f"{text(node.left)}.add_({text(node.right)})"
    if call(node, "add") and text(node.func) == "torch.add":
        x, *rest = arguments(node) or [text(node)]
        yield from (f"{x}.add_({more})" for more in rest[:1])


@operator(ATTENDING | {"positions"})
def dropout_that_never_ends(node: ast.AST) -> Iterator[str]:
    """In evaluation, too, something is dropped."""
    if call(node, "dropout") and keyword(node, "training"):
        yield with_option(node, 9, "training", "True").replace(
            "p=dropout_p", "p=0.1"
        )
    if isinstance(node, ast.Call) and re.fullmatch(
        r"self\.\w*drop\w*", text(node.func)
    ):
        yield f"torch.dropout({taken(node)}, 0.1, True)"


@operator(ATTENDING | {"positions"})
def dropout_left_out(node: ast.AST) -> Iterator[str]:
    """In training, nothing is dropped."""
    if isinstance(node, ast.Call) and re.fullmatch(
        r"(self\.\w*drop\w*|F\.dropout)", text(node.func)
    ):
        yield taken(node)


@operator(ATTENDING)
def dropout_made_in_each_call(node: ast.AST) -> Iterator[str]:
    """A new dropout in each call is in training for ever."""
    if isinstance(node, ast.Call) and re.fullmatch(
        r"self\.\w*drop\w*", text(node.func)
    ):
        yield f"nn.Dropout(0.1)({taken(node)})"


@operator(NUMERIC)
def gradient_cut(node: ast.AST) -> Iterator[str]:
    """What comes out has forgotten where a part of it came from."""
    if binary(node, ast.MatMult) and re.fullmatch(
        "v|value|values", text(node.right)
    ):
        yield f"({text(node.left)}) @ {text(node.right)}.detach()"
    if call(node, "mean", "var", "amax") and is_method(node):
        yield f"({text(node)}).detach()"


@operator(NUMERIC)
def keepdim_left_out(node: ast.AST) -> Iterator[str]:
    """One axis is lost, and what follows broadcasts or fails."""
    if isinstance(node, ast.Call) and keyword(node, "keepdim"):
        yield without(node, "keepdim")
