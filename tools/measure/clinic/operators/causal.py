"""Mistakes with diagonals and windows, and of those who make masks."""

import ast
import re
from collections.abc import Iterator
from textwrap import indent

from tools.measure.clinic.operators import ATTENDING, operator
from tools.measure.clinic.operators.syntax import (
    binary,
    call,
    is_method,
    keyword,
    number,
    operand,
    options,
    says,
    text,
    with_option,
)

MAKERS = frozenset({"causal-mask", "padding-mask"})
CAUSAL = ATTENDING | {"causal-mask"}
FLIP = {
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.Eq: "!=",
    ast.NotEq: "==",
}
NEXT = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
MIRROR = {ast.Lt: ">", ast.LtE: ">=", ast.Gt: "<", ast.GtE: "<="}


def compares(node: ast.AST) -> bool:
    """Whether it is one comparison, of tensors by their looks."""
    return (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and type(node.ops[0]) in FLIP
        and not isinstance(node.comparators[0], ast.Constant)
        and "self.training" not in text(node)
    )


def other_sign(node: ast.Compare, signs: dict[type, str]) -> str:
    """A comparison with another sign."""
    sign = signs[type(node.ops[0])]
    return f"({text(node.left)}) {sign} ({text(node.comparators[0])})"


@operator(CAUSAL)
def diagonal_left_out(node: ast.AST) -> Iterator[str]:
    """A token does not see itself."""
    yield from diagonal(node, -1)
    if compares(node) and ordered(node) and type(node.ops[0]) in NEXT:
        keeps = type(node.ops[0]) in (ast.LtE, ast.GtE)
        if keeps or says(node, "future", "late", "place", "i"):
            yield other_sign(node, NEXT)


@operator(CAUSAL)
def diagonal_one_too_far(node: ast.AST) -> Iterator[str]:
    """Each token sees the next one."""
    yield from diagonal(node, 1)
    if compares(node) and ordered(node):
        right = text(node.comparators[0])
        step = (
            "+" if isinstance(node.ops[0], ast.LtE | ast.Gt | ast.Lt) else "-"
        )
        sign = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
        same = sign[type(node.ops[0])]
        yield f"({text(node.left)}) {same} ({right}) {step} 1"


def diagonal(node: ast.AST, by: int) -> Iterator[str]:
    """A triangle whose diagonal is moved."""
    if call(node, "tril", "triu"):
        told = keyword(node, "diagonal")
        now = told.value if told else (options(node) or [None])[0]
        where = f"({text(now)}) + {by}" if now is not None else str(by)
        yield with_option(node, 0, "diagonal", where)


def ordered(node: ast.Compare) -> bool:
    """Whether positions are compared by their order."""
    return type(node.ops[0]) in NEXT and says(
        node,
        *(r"arange", r"\bplace\b", r"\bposition\b", r"\b[ij]\b", r"\brows\b"),
    )


@operator(CAUSAL, convention=True)
def aligned_at_the_other_end(node: ast.AST) -> Iterator[str]:
    """The first query sits on the first key, not the last on the last."""
    if call(node, "tril", "triu"):
        told = keyword(node, "diagonal")
        now = told.value if told else (options(node) or [None])[0]
        if now is not None and binary(now, ast.Sub):
            yield with_option(node, 0, "diagonal", "0")
        if now is not None and binary(now, ast.Add):
            yield with_option(node, 0, "diagonal", "1")
    if call(node, "arange") and len(node.args) > 1:
        start, stop = map(text, node.args[:2])
        if "-" in start or re.fullmatch("start|seen", start):
            yield text(node).replace(
                f"{start}, {stop}", f"0, ({stop}) - ({start})"
            )
    if (
        binary(node, ast.Add)
        and re.fullmatch(r"\(?\w+ - \w+\)?", text(node.right))
        and "arange" in text(node.left)
    ):
        yield text(node.left)


@operator(CAUSAL)
def other_triangle(node: ast.AST) -> Iterator[str]:
    """The future is seen, and nothing else."""
    if call(node, "tril", "triu"):
        whole, name = text(node), "tril" if call(node, "tril") else "triu"
        other = "triu" if name == "tril" else "tril"
        yield (
            other.join(whole.rsplit(name, 1))
            if whole.count(name) == 1
            else whole.replace(f"torch.{name}", f"torch.{other}", 1)
        )
    if compares(node) and ordered(node):
        yield other_sign(node, MIRROR)


@operator(ATTENDING)
def not_causal(node: ast.AST) -> Iterator[str]:
    """The flag is not passed on, or what it asks for is not done."""
    if call(node, "scaled_dot_product_attention"):
        told = keyword(node, "is_causal")
        if told:
            yield with_option(node, 5, "is_causal", "False")
    if isinstance(node, ast.If) and text(node.test) == "causal":
        yield "pass"
    if call(node, "tril"):
        yield f"torch.ones_like({operand(node)})"


@operator(CAUSAL)
def always_causal(node: ast.AST) -> Iterator[str]:
    """Later tokens are hidden, though nobody asked for it."""
    if isinstance(node, ast.If) and text(node.test) == "causal":
        yield f"if True:\n{indent(text(ast.Module(node.body, [])), '    ')}"
    if call(node, "scaled_dot_product_attention"):
        told = keyword(node, "is_causal")
        if told and not isinstance(told.value, ast.Constant):
            yield with_option(node, 5, "is_causal", "True")


@operator(ATTENDING)
def window_one_wider(node: ast.AST) -> Iterator[str]:
    """A window of three has four keys."""
    if compares(node) and says(node.comparators[0], "window"):
        yield other_sign(node, NEXT)
    if isinstance(node, ast.Assign) and text(node.targets[0]) in (
        "WINDOW",
        "REACH",
        "SIZE",
    ):
        yield f"{text(node.targets[0])} = {number(node.value) + 1}"


@operator(ATTENDING)
def window_to_both_sides(node: ast.AST) -> Iterator[str]:
    """The window is open towards the future, or has one edge."""
    if (
        binary(node, ast.BitAnd)
        and compares(node.left)
        and compares(node.right)
    ):
        yield text(node.right)
        yield text(node.left)


@operator(MAKERS, convention=True)
def table_upside_down(node: ast.AST) -> Iterator[str]:
    """True stands where False should."""
    if isinstance(node, ast.Return) and node.value:
        value = text(node.value)
        if says(value, "==|!=|<|bool"):
            yield f"return ~({value})"


@operator(MAKERS)
def padding_one_off(node: ast.AST) -> Iterator[str]:
    """One token too many is real, or one too few."""
    less = compares(node) and isinstance(node.ops[0], ast.Lt)
    if less and says(node, "len"):
        yield other_sign(node, NEXT)
        right = text(node.comparators[0])
        yield f"({text(node.left)}) < ({right}) - 1"
    if isinstance(node, ast.Slice) and text(node) == ":length":
        yield ":length + 1"


@operator(MAKERS)
def one_text_for_all(node: ast.AST) -> Iterator[str]:
    """The longest, or the first, tells how long all texts are."""
    if isinstance(node, ast.Subscript) and text(node.value) == "lengths":
        axes = text(node.slice).strip("()")
        yield f"lengths.max().expand_as(lengths)[{axes}]"
        yield f"lengths[:1].expand_as(lengths)[{axes}]"
    if call(node, "unsqueeze") and operand(node) == "lengths":
        yield "lengths[:1].expand_as(lengths).unsqueeze(-1)"
    if isinstance(node, ast.Compare) and text(node.left) in ("src", "seq"):
        yield f"({text(node)})[:1].expand_as({text(node.left)})"


@operator(MAKERS)
def axes_of_the_mask(node: ast.AST) -> Iterator[str]:
    """The mask broadcasts over queries, or has an axis too few."""
    twice = call(node, "unsqueeze") and is_method(node)
    if twice and call(node.func.value, "unsqueeze"):
        inner = operand(node.func.value)
        yield f"({inner}).unsqueeze(1)"
        yield f"({inner}).unsqueeze(1).unsqueeze(3)"
    made = node.value if isinstance(node, ast.Return) else None
    if made and says(made, r"< lengths\["):
        yield f"return ({text(made)}).mT"
    if call(node, "zeros") and len(node.args) > 2:
        batch, *_, last = map(text, node.args)
        yield f"torch.zeros({batch}, {last})"
