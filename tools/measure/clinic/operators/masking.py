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
    number,
    operand,
    options,
    says,
    sides,
    text,
    with_body,
    with_option,
)

MASKED = ATTENDING | {"softmax"}
MAKERS = frozenset({"causal-mask", "padding-mask"})
CAUSAL = ATTENDING | {"causal-mask"}
LOW = r"inf\b|-1e|finfo|-10000|\.min\b"
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


def is_fill(node: ast.AST) -> bool:
    """Whether it fills scores where a mask says so."""
    return call(node, "masked_fill") and len(options(node)) == 2


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
            flipped = f"None if {mask} is None else ~{mask}"
            yield with_option(node, 3, "attn_mask", flipped)


@operator(MASKED)
def mask_not_used(node: ast.AST) -> Iterator[str]:
    """Everything is seen, whatever the mask says."""
    if is_fill(node):
        yield operand(node)
    if call(node, "where") and len(node.args) == 3:
        yield text(node.args[1])
    if binary(node, ast.Add) and is_mask(node.right):
        yield text(node.left)
    if call(node, "scaled_dot_product_attention"):
        given = keyword(node, "attn_mask")
        if given:
            yield with_option(node, 3, "attn_mask", "None")


@operator(MASKED)
def filled_with_zero(node: ast.AST) -> Iterator[str]:
    """Forbidden scores become zero, which is a score like another."""
    if is_fill(node) and re.search(LOW, text(options(node)[1])):
        mask = text(options(node)[0])
        yield f"({operand(node)}).masked_fill({mask}, 0.0)"


@operator(MASKED)
def filled_with_too_little(node: ast.AST) -> Iterator[str]:
    """Forbidden scores become minus nine, which some scores are."""
    if is_fill(node) and re.search(LOW, text(options(node)[1])):
        mask = text(options(node)[0])
        yield f"({operand(node)}).masked_fill({mask}, -9.0)"


@operator(MASKED)
def filled_with_a_tiny_number(node: ast.AST) -> Iterator[str]:
    """A number that is small, and not low, as float.min of C."""
    if is_fill(node) and re.search(LOW, text(options(node)[1])):
        mask, x = text(options(node)[0]), operand(node)
        yield f"({x}).masked_fill({mask}, torch.finfo(({x}).dtype).tiny)"


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
        inner = node.func.value if not node.args else node.args[0]
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
    if scores and isinstance(statement, ast.Assign):
        value = text(statement.value)
        target = statement.targets[0]
        if "softmax" in value and scores in value and type(target) is ast.Name:
            return target.id
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
    if is_fill(node) and re.search(r"mask\b|allowed|blocked|hidden", text(options(node)[0])):
        mask, fill = map(text, options(node))
        yield f"({operand(node)}).masked_fill(({mask})[:1], {fill})"
    if isinstance(node, ast.Subscript) and says(node.value, r"mask$|padding$"):
        if "None" in text(node.slice) and ":" in text(node.slice):
            yield f"{text(node.value)}[:1][{text(node.slice).strip('()')}]"


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
        step = "+" if isinstance(node.ops[0], ast.LtE | ast.Gt | ast.Lt) else "-"
        sign = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
        yield f"({text(node.left)}) {sign[type(node.ops[0])]} ({right}) {step} 1"


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
    if binary(node, ast.Add) and re.fullmatch(r"\(?\w+ - \w+\)?", text(node.right)):
        if "arange" in text(node.left):
            yield text(node.left)


@operator(CAUSAL)
def other_triangle(node: ast.AST) -> Iterator[str]:
    """The future is seen, and nothing else."""
    if call(node, "tril", "triu"):
        whole, name = text(node), "tril" if call(node, "tril") else "triu"
        other = "triu" if name == "tril" else "tril"
        yield other.join(whole.rsplit(name, 1)) if whole.count(
            name
        ) == 1 else whole.replace(f"torch.{name}", f"torch.{other}", 1)
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
        yield f"if True:\n    {text(ast.Module(node.body, [])).replace(chr(10), chr(10) + '    ')}"
    if call(node, "scaled_dot_product_attention"):
        told = keyword(node, "is_causal")
        if told and not isinstance(told.value, ast.Constant):
            yield with_option(node, 5, "is_causal", "True")


@operator(ATTENDING | {"softmax"}, convention=True)
def empty_rows_otherwise(node: ast.AST) -> Iterator[str]:
    """A query that may see nothing gets something else."""
    if call(node, "nan_to_num"):
        yield operand(node)
    if call(node, "masked_fill") and says(options(node)[0], r"any\("):
        yield operand(node)
    if is_fill(node) and "inf" in text(options(node)[1]):
        x = operand(node)
        yield text(node).replace(
            text(options(node)[1]), f"torch.finfo(({x}).dtype).min"
        )


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
    if binary(node, ast.BitAnd) and compares(node.left) and compares(node.right):
        yield text(node.right)
        yield text(node.left)


@operator(MAKERS, convention=True)
def table_upside_down(node: ast.AST) -> Iterator[str]:
    """True stands where False should."""
    if isinstance(node, ast.Return):
        value = text(node.value)
        if says(value, "==|!=|<|bool"):
            yield f"return ~({value})"


@operator(MAKERS)
def padding_one_off(node: ast.AST) -> Iterator[str]:
    """One token too many is real, or one too few."""
    if compares(node) and says(node, "len"):
        yield other_sign(node, {ast.Lt: "<="})
        yield f"{text(node)[:0]}({text(node.left)}) < ({text(node.comparators[0])}) - 1"
    if isinstance(node, ast.Slice) and text(node) == ":length":
        yield ":length + 1"


@operator(MAKERS)
def one_text_for_all(node: ast.AST) -> Iterator[str]:
    """The longest, or the first, tells how long all texts are."""
    if isinstance(node, ast.Subscript) and text(node.value) == "lengths":
        yield f"lengths.max().expand_as(lengths)[{text(node.slice).strip('()')}]"
        yield f"lengths[:1].expand_as(lengths)[{text(node.slice).strip('()')}]"
    if call(node, "unsqueeze") and operand(node) == "lengths":
        yield f"lengths[:1].expand_as(lengths).unsqueeze(-1)"
    if isinstance(node, ast.Compare) and text(node.left) in ("src", "seq"):
        yield f"({text(node)})[:1].expand_as({text(node.left)})"


@operator(MAKERS)
def axes_of_the_mask(node: ast.AST) -> Iterator[str]:
    """The mask broadcasts over queries, or has an axis too few."""
    if call(node, "unsqueeze") and call(node.func.value, "unsqueeze"):
        inner = operand(node.func.value)
        yield f"({inner}).unsqueeze(1)"
        yield f"({inner}).unsqueeze(1).unsqueeze(3)"
    if isinstance(node, ast.Return) and says(node.value, r"< lengths\["):
        yield f"return ({text(node.value)}).mT"
    if call(node, "zeros") and len(node.args) > 2:
        batch, *_, last = map(text, node.args)
        yield f"torch.zeros({batch}, {last})"
