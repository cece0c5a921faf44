"""Mistakes of norms: eps, variance, axis, gain and shift."""

import ast
import re
from collections.abc import Iterator

from tools.measure.clinic.operators import BLOCKS, NORMS, operator
from tools.measure.clinic.operators.syntax import (
    binary,
    call,
    is_method,
    keyword,
    number,
    operand,
    options,
    says,
    taken,
    text,
    with_option,
)

EPS = r"(?:\w+\.)*\w*eps\w*"  # whatever it is called


@operator(NORMS)
def eps_outside_the_root(node: ast.AST) -> Iterator[str]:
    """Eps is added to the root, not under it."""
    added = re.search(rf" \+ ({EPS})", text(node))
    if added is None:
        return
    plus, eps = added.group(0, 1)
    if call(node, "sqrt"):
        yield f"({text(node).replace(plus, '')} + {eps})"
    if call(node, "rsqrt"):
        inner = operand(node).replace(plus, "")
        yield f"(1 / (({inner}).sqrt() + {eps}))"
    if binary(node, ast.Pow):
        inner = text(node.left).replace(plus, "")
        yield f"(({inner}) ** 0.5 + {eps})"


@operator(NORMS)
def eps_left_out(node: ast.AST) -> Iterator[str]:
    """A token without variance gives NaN."""
    if binary(node, ast.Add) and re.fullmatch(EPS, text(node.right)):
        yield text(node.left)


@operator(NORMS, convention=True)
def another_eps(node: ast.AST) -> Iterator[str]:
    """A thousand times larger than was said."""
    if isinstance(node, ast.Constant) and node.value in (1e-5, 1e-6):
        yield repr(node.value * 1000)


@operator(NORMS)
def sample_variance(node: ast.AST) -> Iterator[str]:
    """Divided by one less than there are features."""
    if call(node, "var"):
        yield with_option(node, 9, "unbiased", "True")
    if call(node, "mean") and says(operand(node), "pow", r"\*\* 2", "square"):
        yield f"({text(node)} * x.shape[-1] / (x.shape[-1] - 1))"


@operator(NORMS)
def not_centred(node: ast.AST) -> Iterator[str]:
    """The mean is not taken off."""
    if binary(node, ast.Sub) and says(node.right, "mean"):
        yield text(node.left)


@operator(frozenset({"rms-norm"}))
def centred(node: ast.AST) -> Iterator[str]:
    """The mean is taken off, which is not asked for."""
    if call(node, "pow", "square") or (
        binary(node, ast.Mult) and text(node) == "x * x"
    ):
        yield "(x - x.mean(-1, keepdim=True)).square()"


@operator(NORMS)
def over_the_tokens(node: ast.AST) -> Iterator[str]:
    """The mean of a feature over the tokens, or of everything."""
    if call(node, "mean", "var", "sum"):
        told = keyword(node, "dim")
        axis = told.value if told else (options(node) or [None])[0]
        if axis is not None and number(axis) == -1:
            yield with_option(node, 0, "dim", "-2")
            yield with_option(node, 0, "dim", "(-2, -1)")


@operator(NORMS)
def sum_for_mean(node: ast.AST) -> Iterator[str]:
    """Sums in the place of means."""
    if call(node, "mean") and says(operand(node), "pow", r"\*\* 2", "square"):
        yield text(node).replace("mean(", "sum(")
    if binary(node, ast.Div) and text(node.right) == "self.d":
        yield text(node.left)


@operator(NORMS)
def gain_left_out(node: ast.AST) -> Iterator[str]:
    """What was learnt is not multiplied with."""
    if binary(node, ast.Mult):
        for one, other in (
            (node.left, node.right),
            (node.right, node.left),
        ):
            if re.fullmatch(r"(self\.)?(a_2|scale|weight|gain|g)", text(one)):
                yield text(other)


@operator(NORMS)
def one_plus_the_gain(node: ast.AST) -> Iterator[str]:
    """The gain counts from one."""
    if (
        isinstance(node, ast.Attribute)
        and re.fullmatch(r"self\.(a_2|scale|weight|gain|g)", text(node))
        and isinstance(node.ctx, ast.Load)
    ):
        yield f"(1 + {text(node)})"


@operator(NORMS)
def shift_left_out(node: ast.AST) -> Iterator[str]:
    """What was learnt is not added, or is multiplied, too."""
    if binary(node, ast.Add) and re.fullmatch(
        r"(self\.)?(b_2|shift|bias)", text(node.right)
    ):
        yield text(node.left)
        if binary(node.left, ast.Mult):
            a, b = text(node.left.left), text(node.left.right)
            yield f"({a} + {text(node.right)}) * {b}"


@operator(NORMS)
def root_left_out(node: ast.AST) -> Iterator[str]:
    """Divided by the variance itself, or multiplied with the root."""
    if call(node, "sqrt"):
        yield operand(node)
    if call(node, "rsqrt"):
        yield f"(1 / ({operand(node)}))"
        yield f"({operand(node)}).sqrt()"
    if binary(node, ast.Pow) and number(node.right) == 0.5:
        yield text(node.left)


@operator(NORMS)
def mean_of_the_sizes(node: ast.AST) -> Iterator[str]:
    """The mean of |x|, not the root of the mean of x²."""
    if call(node, "pow", "square") and is_method(node):
        yield f"({operand(node)}).abs()"


@operator(BLOCKS)
def norm_left_out(node: ast.AST) -> Iterator[str]:
    """A norm is not used."""
    if is_norm(node):
        yield taken(node)


def is_norm(node: ast.AST) -> bool:
    """Whether it calls one of a block's norms."""
    return isinstance(node, ast.Call) and bool(
        re.fullmatch(
            r"self\.(\w*norm\w*|ln\w*|n\[\d\])", text(node.func).lower()
        )
    )


@operator(BLOCKS)
def another_norm(node: ast.AST) -> Iterator[str]:
    """The norm of another sublayer."""
    if is_norm(node):
        name = text(node.func)
        for was, becomes in (
            ("1", "2"),
            ("2", "1"),
            ("_a", "_b"),
            ("_b", "_a"),
            ("attention_norm", "ffn_norm"),
            ("ffn_norm", "attention_norm"),
            ("norm_mixer", "norm_mlp"),
            ("norm_mlp", "norm_mixer"),
            ("n[0]", "n[1]"),
            ("n[1]", "n[2]"),
        ):
            if name.endswith(was):
                other = name[: -len(was)] + becomes
                yield f"{other}({taken(node)})"
                break


@operator(BLOCKS)
def normed_twice(node: ast.AST) -> Iterator[str]:
    """What goes into a sublayer, or comes out, is normed again."""
    if is_norm(node):
        yield f"{text(node.func)}({text(node)})"
