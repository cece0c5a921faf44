"""Mistakes of blocks: residuals, order, what is handed on."""

import ast
import re
from collections.abc import Iterator

from tools.measure.clinic.operators import BLOCKS, operator
from tools.measure.clinic.operators.norms import is_norm
from tools.measure.clinic.operators.syntax import (
    binary,
    body,
    says,
    taken,
    text,
    with_body,
)

SUBLAYER = r"self\.(att\w*|self_attn|cross_attn|ff\w*|feed_forward|mlp|mixer|"
SUBLAYER += r"a|c|f|drop\w*|down|fc2|masked_attention|encoder_attention|"
SUBLAYER += r"attend|linear_out)\b|sublayer|out$|attn_output|ffn_output"
CROSS = r"self\.(cross_attn|encoder_attention|c)"


def is_residual(node: ast.AST) -> bool:
    """Whether a sum joins a path and what a sublayer says."""
    return binary(node, ast.Add) and not says(node.left, r"\(")


@operator(BLOCKS)
def residual_left_out(node: ast.AST) -> Iterator[str]:
    """What was there is not added."""
    if is_residual(node):
        yield text(node.right)


@operator(BLOCKS)
def sublayer_left_out(node: ast.AST) -> Iterator[str]:
    """What a sublayer says is not added."""
    if is_residual(node):
        yield text(node.left)


@operator(BLOCKS)
def residual_subtracted(node: ast.AST) -> Iterator[str]:
    """Taken off, where it should be added."""
    if is_residual(node):
        yield f"{text(node.left)} - ({text(node.right)})"


@operator(BLOCKS)
def norm_on_the_path(node: ast.AST) -> Iterator[str]:
    """What is added was normed."""
    if is_residual(node):
        inner = [n for n in ast.walk(node.right) if is_norm(n)]
        if inner:
            yield f"{text(inner[0])} + ({text(node.right)})"
    if isinstance(node, ast.Assign) and is_norm(node.value):
        target = text(node.targets[0])
        source = taken(node.value)
        if target != source and source in ("src", "x"):
            yield f"{target} = {source} = {text(node.value)}"


@operator(BLOCKS)
def norm_on_the_other_side(node: ast.AST) -> Iterator[str]:
    """Behind the sum, where it should stand before the sublayer."""
    if isinstance(node, ast.Assign | ast.Return) and node.value is not None:
        if not is_residual(node.value):
            return
        inner = [n for n in ast.walk(node.value.right) if is_norm(n)]
        if len(inner) == 1:
            norm, x = text(inner[0].func), taken(inner[0])
            plain = text(node.value).replace(text(inner[0]), x)
            yield text(node).replace(text(node.value), f"{norm}({plain})")


@operator(BLOCKS)
def mask_not_handed_on(node: ast.AST) -> Iterator[str]:
    """The block takes a mask, and its attention does not see it."""
    if isinstance(node, ast.Call) and re.match(SUBLAYER, text(node.func)):
        for _i, told in enumerate(node.keywords):
            if told.arg and "mask" in told.arg:
                rest = [k for k in node.keywords if k is not told]
                words = [text(a) for a in node.args]
                words += [f"{k.arg}={text(k.value)}" for k in rest]
                yield f"{text(node.func)}({', '.join(words)})"
        if node.args and text(node.args[-1]) in ("mask", "past"):
            words = [text(a) for a in node.args[:-1]] + ["None"]
            yield f"{text(node.func)}({', '.join(words)})"


@operator(BLOCKS, convention=True)
def mask_handed_on_upside_down(node: ast.AST) -> Iterator[str]:
    """The block's mask means the opposite of its attention's."""
    if isinstance(node, ast.keyword) and node.arg and "mask" in node.arg:
        return
    if isinstance(node, ast.Call) and re.match(SUBLAYER, text(node.func)):
        for told in node.keywords:
            if told.arg and "mask" in told.arg:
                was = f"{told.arg}={text(told.value)}"
                m = text(told.value)
                flipped = f"{told.arg}=None if {m} is None else ~{m}"
                yield text(node).replace(was, flipped)


@operator(BLOCKS)
def cross_attention_to_itself(node: ast.AST) -> Iterator[str]:
    """The memory is not looked at."""
    if not (isinstance(node, ast.Call) and node.args):
        return
    if re.fullmatch(CROSS, text(node.func)):
        first, *rest = map(text, node.args)
        words = [first, *(first if r in MEMORY else r for r in rest)]
        words += [f"{k.arg}={text(k.value)}" for k in node.keywords]
        yield f"{text(node.func)}({', '.join(words)})"


MEMORY = ("memory", "enc", "y", "context")


@operator(BLOCKS)
def attentions_exchanged(node: ast.AST) -> Iterator[str]:
    """The one's weights do the other's work."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        pairs = {
            "self.self_attn": "self.cross_attn",
            "self.cross_attn": "self.self_attn",
            "self.masked_attention": "self.encoder_attention",
            "self.encoder_attention": "self.masked_attention",
            "self.a": "self.c",
            "self.c": "self.a",
        }
        if text(node) in pairs:
            yield pairs[text(node)]


@operator(BLOCKS)
def sublayers_in_another_order(node: ast.AST) -> Iterator[str]:
    """The second comes before the first."""
    if not isinstance(node, ast.FunctionDef) or node.name != "forward":
        return
    steps = body(node)
    for i in range(len(steps) - 1):
        if all(joins(step) for step in steps[i : i + 2]):
            made = [*steps[:i], steps[i + 1], steps[i], *steps[i + 2 :]]
            yield with_body(node, made)


def joins(statement: ast.stmt) -> bool:
    """Whether a statement is a whole sublayer, x = … x …."""
    return (
        isinstance(statement, ast.Assign)
        and text(statement.targets[0]) == "x"
        and re.search(r"\bx\b", text(statement.value)) is not None
        and (
            is_residual(statement.value)
            or is_norm(statement.value)
            or says(statement.value, r"self\.first")
        )
    )


@operator(BLOCKS, convention=True)
def side_by_side(node: ast.AST) -> Iterator[str]:
    """The second sublayer does not see what the first brought."""
    if not isinstance(node, ast.FunctionDef) or node.name != "forward":
        return
    names = [a.arg for a in node.args.args]
    if len(names) < 2:
        return
    steps, x = body(node), names[1]
    sums = [i for i, s in enumerate(steps) if residual_of(s, x)]
    if len(sums) > 1:
        i = sums[1]
        start = ast.parse(f"start = {x}").body
        right = text(steps[i].value.right)
        words = text(steps[i]).replace(
            right, re.sub(rf"\b{x}\b", "start", right)
        )
        changed = ast.parse(
            words if not words.startswith("return") else "0"
        ).body
        if words.startswith("return"):
            changed = [ast.Return(ast.parse(words[7:], mode="eval").body)]
        yield with_body(node, [*start, *steps[:i], *changed, *steps[i + 1 :]])


def residual_of(statement: ast.stmt, x: str) -> bool:
    """Whether a statement adds what a sublayer says to x."""
    return (
        isinstance(statement, ast.Assign | ast.Return)
        and statement.value is not None
        and is_residual(statement.value)
        and text(statement.value.left) == x
    )


@operator(BLOCKS)
def causal_mask_left_out(node: ast.AST) -> Iterator[str]:
    """The future is seen."""
    if isinstance(node, ast.keyword) or not isinstance(node, ast.Call):
        return
    whole = text(node)
    if "attn_mask=future" in whole or "attn_mask=tgt_mask" in whole:
        yield re.sub(r", attn_mask=\w+", "", whole)
    if whole.endswith(", past)"):
        yield whole.replace(", past)", ")")


@operator(BLOCKS)
def bend_left_out(node: ast.AST) -> Iterator[str]:
    """Two linear maps without anything between them."""
    if isinstance(node, ast.Call) and text(node.func) in (
        "torch.relu",
        "F.gelu",
    ):
        yield taken(node)
