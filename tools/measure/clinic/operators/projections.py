"""Mistakes with what is projected, and in what order it is taken apart."""

import ast
import re
from collections.abc import Iterator

from tools.measure.clinic.operators import ATTENDING, operator
from tools.measure.clinic.operators.syntax import (
    arguments,
    binary,
    call,
    called,
    keyword,
    operand,
    says,
    taken,
    text,
    with_option,
)

KEY = {"v": "k", "value": "key"}
LAYERS = ATTENDING - {"attention", "efficient"}
OUT = r"self\.(W_o|c_proj|proj|dense|out_proj|out|mix|wo|back|fc|to_out|"
OUT += r"o_proj|output|linear|w_o|o|linears\[-1\])$"


@operator(LAYERS)
def parts_in_another_order(node: ast.AST) -> Iterator[str]:
    """Queries, keys and values are taken apart in another order."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return
    target = node.targets[0]
    if not isinstance(target, ast.Tuple) or not isinstance(
        node.value, ast.Call
    ):
        return
    names = [text(name) for name in target.elts]
    if called(node.value) in ("chunk", "split", "unbind"):
        if sorted(names) == ["k", "q", "v"]:
            a, b, c = names
            for order in ((b, a, c), (a, c, b), (c, a, b)):
                yield f"{', '.join(order)} = {text(node.value)}"
        if names == ["k", "v"]:
            yield f"v, k = {text(node.value)}"


@operator(ATTENDING)
def keys_as_values(node: ast.AST) -> Iterator[str]:
    """The average of the keys."""
    if call(node, "scaled_dot_product_attention") and len(node.args) > 2:
        yield with_option(node, 1, "value", text(node.args[1]))
    if binary(node, ast.MatMult) and re.fullmatch("v|value", text(node.right)):
        yield f"({text(node.left)}) @ {KEY[text(node.right)]}"
    if not isinstance(node, ast.Call) or not arguments(node):
        return
    v = arguments(node)[-1]
    if call(node, "matmul", "bmm") and v in KEY:
        yield f"{text(node)[: -len(v) - 1]}{KEY[v]})"
    if call(node, "einsum") and v in KEY:
        yield with_option(node, 1, "x", KEY[v])


@operator(LAYERS)
def one_map_for_two(node: ast.AST) -> Iterator[str]:
    """Keys or values are made by another's matrix."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        whole = text(node)
        swaps = (
            (r"W_v$", "W_k"),
            (r"\bv_proj$", "k_proj"),
            (r"\bwv$", "wk"),
            (r"\bto_v$", "to_k"),
            (r"\bvalue$", "key"),
            (r"\btell$", "offer"),
            (r"\bw_v$", "w_k"),
            (r"\bw_k$", "w_q"),
            (r"\bW_k$", "W_q"),
            (r"\bk_proj$", "q_proj"),
            (r"self\.v$", "self.k"),
            (r"self\.k$", "self.q"),
            (r"\bW_value$", "W_key"),
            (r"\bW_V$", "W_K"),
        )
        for was, becomes in swaps:
            if re.search(was, whole):
                yield re.sub(was, becomes, whole)


@operator(LAYERS)
def values_not_projected(node: ast.AST) -> Iterator[str]:
    """The tokens themselves are averaged."""
    if isinstance(node, ast.Call) and re.fullmatch(
        r"self\.(\w+\.)?(W_v|v_proj|to_v|value|wv|tell|w_v|v)",
        text(node.func),
    ):
        yield taken(node)


@operator(LAYERS)
def output_not_projected(node: ast.AST) -> Iterator[str]:
    """The heads come back side by side."""
    if isinstance(node, ast.Call) and re.fullmatch(OUT, text(node.func)):
        yield taken(node)


@operator(ATTENDING)
def queries_and_keys_exchanged(node: ast.AST) -> Iterator[str]:
    """The scores stand on their side."""
    if call(node, "scaled_dot_product_attention") and len(node.args) > 2:
        q, k = map(text, node.args[:2])
        yield with_option(node, -1, "query", k).replace(
            f"({k}, {k}", f"({k}, {q}", 1
        )
    if call(node, "einsum") and len(node.args) == 3:
        one, other = map(text, node.args[1:])
        if re.fullmatch(r"q\w*", one) and re.fullmatch(r"k\w*", other):
            yield f"torch.einsum({text(node.args[0])}, {other}, {one})"
    if binary(node, ast.MatMult):
        q, k = text(node.left), text(node.right)
        if re.fullmatch(r"q\w*", q) and re.match(r"k\w*\.", k):
            name = k.split(".")[0]
            yield f"{name} @ {q}{k[len(name) :]}"


@operator(LAYERS)
def context_not_used(node: ast.AST) -> Iterator[str]:
    """It looks at itself, where it should look at the other."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        name = text(node.args[0])
        if name in ("context", "memory", "encoder_output", "y") and says(
            node.func, "self"
        ):
            yield f"{text(node.func)}(x)"


@operator(ATTENDING)
def input_added(node: ast.AST) -> Iterator[str]:
    """The layer adds its input itself, and so will the block."""
    if (
        isinstance(node, ast.Return)
        and isinstance(node.value, ast.Call)
        and re.fullmatch(OUT, text(node.value.func))
    ):
        yield f"return x + {text(node.value)}"


@operator(LAYERS)
def matrix_on_its_side(node: ast.AST) -> Iterator[str]:
    """X Wᵀ, where x W is meant."""
    if binary(node, ast.MatMult) and says(node.right, r"self\.w"):
        yield f"({text(node.left)}) @ ({text(node.right)}).mT"


@operator(LAYERS)
def bias_scaled_or_left_out(node: ast.AST) -> Iterator[str]:
    """The bias is left out, or comes after the scale."""
    if binary(node, ast.Add) and says(node.right, r"self\.b_"):
        yield text(node.left)
    if binary(node, ast.Mult) and re.search(r"scal", text(node.right)):
        inner = node.left
        if isinstance(inner, ast.Call) and says(inner.func, r"self\.q"):
            f, x = text(inner.func), taken(inner)
            yield f"{f}(({x}) * {text(node.right)})"


@operator(ATTENDING)
def queries_instead_of_keys(node: ast.AST) -> Iterator[str]:
    """A part of the queries goes where the keys should."""
    listed = node.args[0] if call(node, "cat") and node.args else None
    if isinstance(listed, ast.List | ast.Tuple):
        items = [text(item) for item in listed.elts]
        axis = keyword(node, "dim")
        if items[-1:] == ["k"] and axis is not None:
            yield f"torch.cat(({items[0]}, q), dim={text(axis.value)})"
    if call(node, "transpose", "permute") and operand(node) in ("k", "key"):
        k = operand(node)
        q = {"k": "q", "key": "query"}[k]
        yield q + text(node).removeprefix(k)
