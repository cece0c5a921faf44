"""Patterns of syntax trees that operators look for."""

import ast
import re
from collections.abc import Iterator

MODULES = {"torch", "F", "math", "nn", "functional"}


def text(node: ast.AST) -> str:
    """A node's text, which is made once."""
    known = vars(node).get("its_text")
    if known is None:
        known = node.its_text = ast.unparse(node)
    return known


def call(node: ast.AST, *names: str) -> bool:
    """Whether it calls something of one of these last names."""
    return isinstance(node, ast.Call) and called(node) in names


def called(node: ast.Call) -> str:
    """The last name of what is called."""
    return text(node.func).rpartition(".")[-1]


def is_method(node: ast.Call) -> bool:
    """Whether a call is one of a tensor, x.f(…), and not torch.f(x, …), nor
    torch.nn.functional.f(x, …).
    """
    if not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return not (isinstance(owner, ast.Name) and owner.id in MODULES)


def operand(node: ast.Call) -> str:
    """The tensor of x.f(…) or torch.f(x, …)."""
    return text(node.func.value) if is_method(node) else taken(node)


def taken(node: ast.Call) -> str:
    """What a function, or a module as in self.f(x), is called with first; if
    with nothing, the call itself: then there is nothing to leave out.
    """
    return next(iter(arguments(node)), text(node))


def arguments(node: ast.Call) -> list[str]:
    """All that stands between the brackets, by its place or by its name."""
    return [text(x) for x in (*node.args, *(k.value for k in node.keywords))]


def options(node: ast.Call) -> list[ast.expr]:
    """The arguments behind the tensor, by their places."""
    return list(node.args if is_method(node) else node.args[1:])


def keyword(node: ast.Call, *names: str) -> ast.keyword | None:
    """The argument of one of these names."""
    found = [k for k in node.keywords if k.arg in names]
    return found[0] if found else None


def option(node: ast.Call, place: int, name: str) -> ast.expr | None:
    """The argument at this place behind the tensor, or of this name."""
    told = keyword(node, name)
    if told is not None:
        return told.value
    by_place = options(node)
    return by_place[place] if place < len(by_place) else None


def with_option(node: ast.Call, place: int, name: str, value: str) -> str:
    """A call with another argument at this place, or of this name."""
    made = ast.parse(text(node), mode="eval").body
    told = keyword(made, name)
    new = ast.parse(value, mode="eval").body
    place += not is_method(made)
    if told is not None:
        told.value = new
    elif place < len(made.args):
        made.args[place] = new
    else:
        made.keywords.append(ast.keyword(name, new))
    return ast.unparse(made)


def without(node: ast.Call, name: str) -> str:
    """A call without an argument of this name."""
    made = ast.parse(text(node), mode="eval").body
    made.keywords = [k for k in made.keywords if k.arg != name]
    return ast.unparse(made)


def binary(node: ast.AST, *kinds: type) -> bool:
    """Whether it joins two things by one of these signs."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, kinds)


def sides(node: ast.BinOp) -> tuple[str, str]:
    """Left and right of a sign."""
    return f"({text(node.left)})", f"({text(node.right)})"


def number(node: ast.AST) -> float | None:
    """The number that stands there, if one does."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    return value if fine else None


def says(node: ast.AST | str, *words: str) -> bool:
    """Whether one of these words stands in it, as a part of a name."""
    whole = node if isinstance(node, str) else text(node)
    return any(re.search(word, whole.lower()) for word in words)


def is_mask(node: ast.AST) -> bool:
    """Whether it is something that says what may be seen."""
    return says(
        node,
        *("mask", "allowed", "blocked", "hidden", "visible", "future"),
        *("past", "near", "outside", "late", "seen", "causal", "tril"),
    ) and not says(node, "masked_fill", "past_k", "past_v")


def body(node: ast.AST) -> list[ast.stmt]:
    """The statements of a function."""
    return node.body if isinstance(node, ast.FunctionDef) else []


def with_body(node: ast.FunctionDef, statements: list[ast.stmt]) -> str:
    """A function with other statements."""
    made = ast.parse(text(node)).body[0]
    made.body = statements
    return ast.unparse(ast.fix_missing_locations(made))


def names_in(node: ast.AST) -> Iterator[str]:
    """The names that are read in it."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield inner.id


def string(node: ast.AST) -> str | None:
    """The text constant that stands there, if one does."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None
