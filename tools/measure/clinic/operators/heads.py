"""Mistakes in how heads are split, merged, repeated, and batches kept."""

import ast
import re
from collections.abc import Iterator

from tools.measure.clinic.operators import ATTENDING, operator
from tools.measure.clinic.operators.syntax import (
    binary,
    call,
    is_method,
    number,
    operand,
    option,
    options,
    string,
    taken,
    text,
    with_option,
)

SHAPING = ("view", "reshape", "unflatten")
TURNING = ("transpose", "permute")


def shape_of(node: ast.Call) -> list[str]:
    """The sizes that a view is asked for, of one with four axes."""
    sizes = options(node)
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple):
        sizes = sizes[0].elts
    return [text(size) for size in sizes]


def is_split(node: ast.AST) -> bool:
    """Whether it views features as heads."""
    return call(node, "view", "reshape") and len(shape_of(node)) == 4


def turned_split(node: ast.AST) -> bool:
    """Whether it splits heads and brings them to the front."""
    return (
        call(node, *TURNING)
        and is_method(node)
        and is_split(node.func.value)
        and [number(o) for o in options(node)] in ([1, 2], [0, 2, 1, 3])
    )


@operator(ATTENDING)
def split_without_transpose(node: ast.AST) -> Iterator[str]:
    """Cut into heads by a view alone: pieces of other tokens."""
    if turned_split(node):
        split = node.func.value
        b, n, h, d = shape_of(split)
        yield f"({operand(split)}).reshape({b}, {h}, {n}, {d})"


@operator(ATTENDING)
def split_every_nth(node: ast.AST) -> Iterator[str]:
    """A head has every nth feature, not its neighbours."""
    if turned_split(node):
        split = node.func.value
        b, n, h, d = shape_of(split)
        x = operand(split)
        yield f"({x}).reshape({b}, {n}, {d}, {h}).permute(0, 3, 1, 2)"
    if call(node, "unflatten") and "transpose" not in text(node):
        axis, sizes = option(node, 0, "dim"), option(node, 1, "sizes")
        if isinstance(sizes, ast.Tuple) and len(sizes.elts) == 2:
            h, _ = map(text, sizes.elts)
            x = operand(node)
            yield f"({x}).unflatten({text(axis)}, (-1, {h})).mT"


@operator(ATTENDING)
def merged_without_transpose(node: ast.AST) -> Iterator[str]:
    """Heads are laid side by side by a view alone."""
    if not call(node, "view", "reshape", "flatten") or not is_method(node):
        return
    inner = node.func.value
    if call(inner, "contiguous"):
        inner = inner.func.value
    if call(inner, *TURNING) and len(shape_of(node)) == 3:
        yield f"({operand(inner)}).reshape({', '.join(shape_of(node))})"


@operator(ATTENDING)
def merged_features_first(node: ast.AST) -> Iterator[str]:
    """The features of all heads are shuffled when they are merged."""
    if (
        call(node, "flatten")
        and is_method(node)
        and not call(node.func.value, "stack")
    ):
        axes = ", ".join(map(text, options(node)))
        yield f"({operand(node)}).transpose(-1, -2).flatten({axes})"
    if (
        call(node, "reshape", "view")
        and len(shape_of(node)) == 3
        and call(node.func.value, *TURNING, "contiguous")
    ):
        sizes = ", ".join(shape_of(node))
        yield f"({operand(node)}).transpose(-1, -2).reshape({sizes})"


@operator(ATTENDING)
def other_axes_exchanged(node: ast.AST) -> Iterator[str]:
    """Two other axes change places."""
    if call(node, "transpose") and is_method(node):
        axes = [number(o) for o in options(node)]
        for was, becomes in (
            ([1, 2], (0, 1)),
            ([0, 1], (1, 2)),
            ([-2, -1], (-3, -1)),
        ):
            if axes == was:
                yield f"({operand(node)}).transpose{becomes}"
    if call(node, "permute") and is_method(node):
        order = [number(o) for o in options(node)]
        if order == [2, 0, 3, 1, 4]:
            yield f"({operand(node)}).permute(2, 1, 3, 0, 4)"
        if order == [0, 2, 1, 3]:
            yield f"({operand(node)}).permute(1, 2, 0, 3)"


@operator(ATTENDING)
def transpose_left_out(node: ast.AST) -> Iterator[str]:
    """Two axes do not change places."""
    if call(node, "transpose", "permute") and is_method(node):
        yield operand(node)


@operator(ATTENDING)
def letters_exchanged(node: ast.AST) -> Iterator[str]:
    """Two letters of an einsum's output have changed places."""
    words = string(node)
    if words is None or not re.fullmatch(r"[\w., ]+->[\w. ]*", words):
        return
    inputs, output = words.split("->")
    letters = output.replace("...", "")
    for i in range(len(letters) - 1):
        a, b = letters[i : i + 2]
        swapped = output.replace(a + b, b + a)
        yield repr(f"{inputs}->{swapped}")


@operator(ATTENDING)
def repeated_in_the_other_order(node: ast.AST) -> Iterator[str]:
    """Key heads in a row, 0 1 0 1, where each should stay for its group."""
    if call(node, "repeat_interleave"):
        times, axis = option(node, 0, "repeats"), option(node, 1, "dim")
        if times is not None and axis is not None:
            x = f"[{operand(node)}] * ({text(times)})"
            yield f"torch.cat({x}, dim={text(axis)})"
    if call(node, "expand") and len(options(node)) == 5:
        b, h, times, n, d = map(text, options(node))
        turned = f"({operand(node)}).transpose(1, 2)"
        yield f"{turned}.expand({b}, {times}, {h}, {n}, {d})"
    if call(node, "reshape") and len(shape_of(node)) == 5:
        b, n, g, r, d = shape_of(node)
        x = operand(node)
        yield f"({x}).reshape({b}, {n}, {r}, {g}, {d}).transpose(2, 3)"


@operator(ATTENDING)
def keys_of_the_first_text(node: ast.AST) -> Iterator[str]:
    """All texts of a batch look into the first."""
    if binary(node, ast.MatMult):
        found = re.match(r"k\w*", text(node.right))
        if found:
            k = found.group()
            rest = text(node.right)[len(k) :]
            yield f"({text(node.left)}) @ {k}[:1].expand_as({k}){rest}"
    if call(node, "scaled_dot_product_attention") and len(node.args) > 2:
        k = text(node.args[1])
        yield with_option(node, 0, "key", f"{k}[:1].expand_as({k})")
    if call(node, "einsum") and len(node.args) == 3:
        k = text(node.args[2])
        if re.fullmatch(r"k\w*", k):
            yield with_option(node, 1, "x", f"{k}[:1].expand_as({k})")


@operator(ATTENDING)
def view_for_reshape(node: ast.AST) -> Iterator[str]:
    """It fails on what is not contiguous, or the copy is forgotten."""
    if call(node, "contiguous") and is_method(node):
        yield operand(node)
    if call(node, "reshape") and is_method(node):
        whole = text(node)
        at = whole.rindex(".reshape(")
        yield f"{whole[:at]}.view({whole[at + 9 :]}"


@operator(ATTENDING)
def one_head_for_all(node: ast.AST) -> Iterator[str]:
    """All heads look where the heads look on average."""
    if call(node, "softmax"):
        whole = f"({text(node)})"
        yield f"{whole}.mean(dim=1, keepdim=True).expand_as({whole})"


@operator(ATTENDING)
def heads_in_reverse(node: ast.AST) -> Iterator[str]:
    """The heads are joined in another order than they were split."""
    if isinstance(node, ast.ListComp) and "head" in text(node):
        yield f"({text(node)})[::-1]"
    if call(node, "stack", "cat"):
        listed = taken(node)
        if listed in ("outputs", "results"):
            yield with_option(node, -1, "tensors", f"{listed}[::-1]")
