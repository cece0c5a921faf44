"""Operators: each plants one mistake wherever its pattern is found.

An operator is a function of a node of a syntax tree. It yields what may stand
in the node's place, as text, if the node is of the pattern that it looks for.
So it finds its places in code of any style.
"""

import ast
import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tools.measure.clinic.patients import SAID, Style

Find = Callable[[ast.AST], Iterator[str]]

ROOMS = (
    "scores",
    "masking",
    "causal",
    "heads",
    "projections",
    "precision",
    "positions",
    "norms",
    "blocks",
    "caches",
    "tiles",
)
ATTENDING = frozenset(
    {
        "attention",
        "self-attention",
        "cross-attention",
        "encoder-block",
        "decoder-block",
        "cached-decoder",
        "efficient",
    }
)
BLOCKS = frozenset({"encoder-block", "decoder-block"})
NORMS = frozenset({"layer-norm", "rms-norm"})


class Operator(NamedTuple):
    """A mistake to plant, in patients of some kinds."""

    name: str
    find: Find
    kinds: frozenset[str] | None  # None: in all
    convention: bool  # whether what comes out may be somebody's convention


class Mutant(NamedTuple):
    """A sound text with a mistake in it."""

    style: Style
    operator: str
    place: int  # which one of those that the operator finds there
    text: str
    convention: bool

    @property
    def name(self) -> str:
        """What it is called, for people."""
        style = f"{self.style.kind}/{self.style.name}"
        return f"{style}: {self.operator} {self.place}"


OPERATORS: list[Operator] = []


def operator(
    kinds: frozenset[str] | None = None, *, convention: bool = False
) -> Callable[[Find], Find]:
    """Add an operator to the list, under the name of its function."""

    def add(find: Find) -> Find:
        name = find.__name__.replace("_", " ")
        OPERATORS.append(Operator(name, find, kinds, convention))
        return find

    return add


def every() -> list[Operator]:
    """All operators."""
    if not OPERATORS:
        for room in ROOMS:
            importlib.import_module(f"{__name__}.{room}")
    return OPERATORS


def mutants(style: Style) -> Iterator[Mutant]:
    """All that can be made of a style by one operator at one place."""
    tree = ast.parse(style.text)
    whole = ast.unparse(tree)
    nodes = list(in_scope(tree, style.kind))
    for one in every():
        if one.kinds is not None and style.kind not in one.kinds:
            continue
        place, seen = 0, {whole}
        for node in nodes:
            for text in one.find(node):
                mutated = replaced(tree, node, text)
                if mutated is not None and mutated not in seen:
                    seen.add(mutated)
                    yield Mutant(
                        style, one.name, place, mutated, one.convention
                    )
                    place += 1


def in_scope(tree: ast.Module, kind: str) -> Iterator[ast.AST]:
    """The nodes of what a patient's author wrote, in the order of the text.

    Of a block it is what joins its parts: what the parts do is a matter of
    other kinds.
    """
    whole = [node for node in tree.body if not says(node)]
    if kind in BLOCKS:
        named = [
            node
            for sort in (ast.FunctionDef, ast.ClassDef)
            for node in whole
            if isinstance(node, sort)
        ]  # the last is a function only where there is no class
        whole = [n for n in named if n is named[-1] or "Sublayer" in n.name]
    nodes = [n for node in whole for n in ast.walk(node)]
    sizes = {id(n) for node in nodes for n in added_sizes(node)}
    yield from (
        n for n in nodes if hasattr(n, "lineno") and id(n) not in sizes
    )


def added_sizes(node: ast.AST) -> Iterator[ast.AST]:
    """The sums in what a class is called with: they are of sizes."""
    if not isinstance(node, ast.Call):
        return
    if not ast.unparse(node.func).rpartition(".")[-1][:1].isupper():
        return
    for given in (*node.args, *node.keywords):
        for part in ast.walk(given):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
                yield part


def says(node: ast.AST) -> bool:
    """Whether a statement says something of the patient."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in SAID
    )


def replaced(tree: ast.Module, node: ast.AST, text: str) -> str | None:
    """The tree's text with a node replaced; None if the text is none."""
    try:
        new = parsed(node, text)
        with put(tree, node, new):
            made = ast.unparse(tree)
        ast.parse(made)  # a sum, say, is no place to put something
        return made
    except (SyntaxError, AttributeError, IndexError):
        return None


def parsed(node: ast.AST, text: str) -> ast.expr | list[ast.stmt]:
    """A text as what may stand in the node's place."""
    if isinstance(node, ast.Slice):  # which is no expression by itself
        return ast.parse(f"x[{text}]").body[0].value.slice
    statements = ast.parse(text).body
    return statements[0].value if isinstance(node, ast.expr) else statements


@contextlib.contextmanager
def put(
    tree: ast.Module, node: ast.AST, new: ast.expr | list[ast.stmt]
) -> Iterator[None]:
    """Put something in a node's place, for a while."""
    holder, field, place = where(tree, node)
    was = getattr(holder, field)
    becomes = new
    if place is not None:
        items = new if isinstance(new, list) else [new]
        becomes = [*was[:place], *items, *was[place + 1 :]]
    setattr(holder, field, becomes)
    try:
        yield
    finally:
        setattr(holder, field, was)


def where(tree: ast.Module, node: ast.AST) -> tuple[ast.AST, str, int | None]:
    """What holds a node: its parent, the field, and the place in a list."""
    for holder in ast.walk(tree):
        for field, value in ast.iter_fields(holder):
            if value is node:
                return holder, field, None
            if isinstance(value, list):
                for place, item in enumerate(value):
                    if item is node:
                        return holder, field, place
    raise LookupError("a node to be replaced must be of the tree")
