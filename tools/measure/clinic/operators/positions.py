"""Mistakes with positions: tables, rotations, offsets."""

import ast
import re
from collections.abc import Iterator

from tools.measure.clinic.operators import operator
from tools.measure.clinic.operators.syntax import (
    binary,
    call,
    is_method,
    number,
    says,
    text,
)

PLACED = frozenset(
    {
        "sinusoidal",
        "rope",
        "positions",
        "self-attention",
        "cached-decoder",
    }
)
TABLES = frozenset({"sinusoidal", "rope", "positions"})
PAIRED = frozenset({"rope", "sinusoidal", "self-attention", "cached-decoder"})
START = r"\b(offset|start_pos|start|begun|seen)\b"


@operator(PLACED)
def base_of_a_thousand(node: ast.AST) -> Iterator[str]:
    """The slow features are too fast."""
    if isinstance(node, ast.Constant) and node.value in (10000, 10000.0):
        yield repr(type(node.value)(1000))


@operator(PLACED)
def sines_and_cosines_exchanged(node: ast.AST) -> Iterator[str]:
    """Where the sine should stand, the cosine does."""
    if call(node, "sin", "cos"):
        whole, name = text(node), "sin" if call(node, "sin") else "cos"
        other = "cos" if name == "sin" else "sin"
        at = whole.rindex(f"{name}(") if is_method(node) else whole.index(name)
        yield whole[:at] + other + whole[at + 3 :]


@operator(PAIRED)
def turned_the_other_way(node: ast.AST) -> Iterator[str]:
    """The sign of one half, or of both."""
    if call(node, "cat", "stack") and node.args:
        pair = node.args[0]
        if isinstance(pair, ast.Tuple) and len(pair.elts) == 2:
            one, other = pair.elts
            rest = text(node)[text(node).index(text(pair)) + len(text(pair)) :]
            name = text(node.func)
            if isinstance(one, ast.UnaryOp):
                yield f"{name}(({text(one.operand)}, -{text(other)}){rest}"
                yield f"{name}(({text(one.operand)}, {text(other)}){rest}"
            if binary(one, ast.Sub) and binary(other, ast.Add):
                a, b = text(one.left), text(one.right)
                c, d = text(other.left), text(other.right)
                yield f"{name}(({a} + {b}, {c} - {d}){rest}"
                yield f"{name}(({a} + {b}, {c} + {d}){rest}"


@operator(TABLES)
def the_two_is_missing(node: ast.AST) -> Iterator[str]:
    """Each pair's exponent is half of what it should be, or twice."""
    if call(node, "arange") and number_step(node):
        start, stop, _ = map(text, node.args)
        more = ", dtype=torch.float64" if node.keywords else ""
        yield f"torch.arange({start}, ({stop}) // 2{more})"
    if binary(node, ast.Mult) and number(node.right) == 2:
        yield text(node.left)
    if binary(node, ast.Mult) and number(node.left) == 2:
        yield text(node.right)
    if binary(node, ast.Div) and text(node.right) == "half":
        yield f"({text(node.left)}) / (2 * half)"


@operator(PLACED)
def counted_from_one(node: ast.AST) -> Iterator[str]:
    """The first token stands at the second place."""
    if call(node, "arange") and not number_step(node):
        if len(node.args) == 1 and says(node.args[0], *PLACES):
            yield f"({text(node)} + 1)"
        if len(node.args) == 2:
            yield f"({text(node)} + 1)"


PLACES = (
    *("shape", "size", "max_len", "n_ctx", "length", "n_position"),
    *("start", r"^n$"),
)


def number_step(node: ast.Call) -> bool:
    """Whether it counts by a step: then it counts features."""
    return len(node.args) > 2


@operator(PLACED)
def offset_not_used(node: ast.AST) -> Iterator[str]:
    """What was before is not counted."""
    if call(node, "arange") and len(node.args) == 2:
        start, stop = map(text, node.args)
        if re.search(START, start):
            yield text(node).replace(
                f"{start}, {stop}", f"0, {stop} - {start}", 1
            )
    if binary(node, ast.Add) and re.fullmatch(START, text(node.right)):
        yield text(node.left)
    if isinstance(node, ast.Slice) and text(node) == "offset:end":
        yield ":end - offset"


@operator(PLACED)
def offset_one_off(node: ast.AST) -> Iterator[str]:
    """New tokens stand one place too far."""
    if isinstance(node, ast.Name) and re.fullmatch(START, node.id):
        yield f"({node.id} + ({node.id} > 0))"


@operator(frozenset({"rope"}), convention=True)
def other_features_paired(node: ast.AST) -> Iterator[str]:
    """Halves for neighbours, or neighbours for halves."""
    if call(node, "chunk") and is_method(node):
        x = text(node.func.value)
        yield f"({x}[..., ::2], {x}[..., 1::2])"
    if isinstance(node, ast.Tuple) and "0::2" in text(node):
        yield "x.chunk(2, dim=-1)"


@operator(frozenset({"rope"}))
def half_is_not_turned(node: ast.AST) -> Iterator[str]:
    """Keys keep their sines or their cosines alone."""
    if (
        binary(node, ast.Add)
        and says(node.left, "cos")
        and says(node.right, "sin")
    ):
        yield text(node.left)
        yield text(node.right)


@operator(frozenset({"rope", "self-attention", "cached-decoder"}))
def positions_along_another_axis(node: ast.AST) -> Iterator[str]:
    """The heads, or the texts, are counted in the place of the tokens."""
    if isinstance(node, ast.Subscript) and text(node) in (
        "x.shape[-2]",
        "x.shape[1]",
    ):
        yield "x.shape[0]" if "[1]" in text(node) else "x.shape[1]"


@operator(TABLES)
def faster_and_faster(node: ast.AST) -> Iterator[str]:
    """The later pairs hurry, where they should slow down."""
    if isinstance(node, ast.UnaryOp) and says(node.operand, "arange", "log"):
        yield text(node.operand)
    if binary(node, ast.Div) and number(node.left) == 1.0:
        yield text(node.right)


@operator(frozenset({"positions"}))
def table_not_cut(node: ast.AST) -> Iterator[str]:
    """All rows, the last rows, or one row for all."""
    if isinstance(node, ast.Slice) and text(node).startswith(":x."):
        stop = text(node)[1:]
        yield f"-{stop}:"
        yield ":1"
    if isinstance(node, ast.Call) and text(node.func) in (
        "x.size",
        "tokens.size",
    ):
        yield "x.size(0)"


@operator(frozenset({"positions"}))
def nothing_added(node: ast.AST) -> Iterator[str]:
    """The positions are made, and not added; or they come back alone."""
    if binary(node, ast.Add) and text(node.left) == "x":
        yield "x"
        yield f"torch.zeros_like(x) + {text(node.right)}"
