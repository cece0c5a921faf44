"""Guards on source, read as text: nothing is imported."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Lines of code: no docstring, no comment, no blank, so that nobody saves on
# words. At 200, four modules stood at exactly that: they had been squeezed.
LONGEST_MODULE, LONGEST_FUNCTION = 220, 30
VAGUE = {"utils", "common", "base", "core", "helpers", "misc", "tools"}
OTHER_NAMES = {"attn", "att", "sim", "num_heads", "n_head", "embed_dim"}
HEADER = ("Computes:", "Time:", "Supports:", "Reference:")

# Who may import whom: a part may import those before it and its own modules.
# Those in ALONE import nothing of ours but their own, and `signatures`.
ORDER = [
    {"wrapped"},
    {"mismatches", "places", "transforms"},
    {"signatures", "bound"},
    {"checks"},
    {"spoilt", "called"},
    {"infinite", "pieces"},
    {"masks", "hidden", "random_features", "entering"},
    {"kernels", "underflow"},
    {"dot_product"},
    {"feature_chunks", "tiles", "buckets", "torch_layer", "probing"},
    {"origins", "multihead", "positions", "efficient"},
    {"layers"},
    {"blocks"},
    {"models"},
    {"single_heads", "devices", "doctor"},
    {"looking_inside"},
    {"labs"},
]
ALONE = {"plots", "data", "cost", "products", "source", "measurements"}
BY_ALL = {"signatures", "called"}  # how arguments and functions are refused

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def modules(package: Path) -> Iterator[tuple[str, ast.Module, str]]:
    """Each module's path in the package, its tree and its text."""
    for path in sorted(package.rglob("*.py")):
        text = path.read_text("utf-8")
        name = path.relative_to(package).with_suffix("").as_posix()
        yield name, ast.parse(text), text


def lines_of_code(tree: ast.AST, text: str) -> int:
    """Lines that hold code: no docstring, no comment, no blank."""
    lines = text.splitlines()
    held: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            held.update(range(node.lineno, (node.end_lineno or 0) + 1))
    for node in ast.walk(tree):
        if is_text(node):
            held -= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return sum(
        bool(lines[i - 1].strip())
        and not lines[i - 1].lstrip().startswith("#")
        for i in held
    )


def is_text(node: ast.AST) -> bool:
    """Whether a statement is nothing but a string: a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def too_long(package: Path) -> list[str]:
    """A module fits on two or three pages, a function on a screen."""
    found = []
    for name, tree, text in modules(package):
        size = lines_of_code(tree, text)
        if size > LONGEST_MODULE:
            found.append(f"{name}: {size} lines of code")
        for node in ast.walk(tree):
            if isinstance(node, Function):
                # Its signature is counted: a reader reads it, too.
                size = lines_of_code(node, text)
                if size > LONGEST_FUNCTION:
                    found.append(f"{name}.{node.name}: {size} lines of code")
    return found


def asserts(package: Path) -> list[str]:
    """Python can be told to skip asserts, so the package has none."""
    return [
        f"{name}:{node.lineno}: a bare assert"
        for name, tree, _ in modules(package)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
    ]


def undocumented(package: Path) -> list[str]:
    """Every public module, class, function and method says what it does.

    But for a mistake that is written out elsewhere: its words are there.
    """
    found = []
    for name, tree, _ in modules(package):
        for node in (tree, *definitions(tree)):
            if not (ast.get_docstring(node) or told_elsewhere(node)):
                label = getattr(node, "name", "the module")
                found.append(f"{name}: {label} has no docstring")
    return found


def told_elsewhere(node: ast.AST) -> bool:
    """Whether it is decorated by ``@mistake_as(…)``, which has its words."""
    return any(
        ast.unparse(decorator).startswith("mistake_as(")
        for decorator in getattr(node, "decorator_list", ())
    )


def definitions(tree: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    """The public classes, functions and methods, none within a function."""
    for node in tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from definitions(node)


def named_badly(package: Path) -> list[str]:
    """No vague module, none named like a function; the book's own words."""
    found = []
    for name, tree, _ in modules(package):
        stem = name.rsplit("/", 1)[-1]
        if stem in VAGUE:
            found.append(f"{name}: says nothing of what it holds")
        for node in ast.walk(tree):
            if isinstance(node, Function) and node.name == stem:
                found.append(f"{name}: a module named like its function")
            if isinstance(node, ast.arg | ast.Name):
                word = node.arg if isinstance(node, ast.arg) else node.id
                if word in OTHER_NAMES:
                    found.append(f"{name}: {word} is a name of others")
    return found


def named_like_pythons(folder: Path) -> list[str]:
    """No module or package of which Python has one of the same name."""
    return [
        f"{path.relative_to(folder).as_posix()}: Python has a {path.stem}"
        for path in sorted(folder.rglob("*"))
        if path.stem in sys.stdlib_module_names
        and (path.suffix == ".py" or next(path.glob("*.py"), None))
    ]


def imports(tree: ast.Module) -> set[str]:
    """Which modules of ours a module imports, as paths in the package."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
            found.add(node.module)
    ours = (name for name in found if name.startswith("selfattn."))
    return {name.removeprefix("selfattn.").replace(".", "/") for name in ours}


def imports_backwards(package: Path) -> list[str]:
    """Imports point one way; the efficient mechanisms know no other."""
    found = []
    rank = {part: i for i, parts in enumerate(ORDER) for part in parts}
    for name, tree, _ in modules(package):
        mine = name.split("/")[0]
        if mine == "__init__":
            continue
        if mine not in rank and mine not in ALONE:
            found.append(f"{name}: has no place in the order of imports")
        for other in sorted(imports(tree)):
            theirs = other.split("/")[0]
            if theirs not in rank:
                continue
            if mine == theirs:
                backwards = mine == "efficient" and not same(name, other)
            elif mine in ALONE:
                backwards = theirs not in BY_ALL
            else:
                backwards = rank[theirs] >= rank[mine]
                backwards = backwards and theirs != "signatures"
            if backwards:
                found.append(f"{name}: imports {other}")
    return found


def same(name: str, other: str) -> bool:
    """Whether an import stays within one efficient mechanism."""
    return other in ("efficient", name) or other.startswith(f"{name}/")


def without_header(package: Path) -> list[str]:
    """Each efficient mechanism opens with its contract."""
    found = []
    for name, tree, _ in modules(package):
        if name.startswith("efficient/") and not name.endswith("__init__"):
            text = ast.get_docstring(tree) or ""
            for line in HEADER:
                if not re.search(rf"^{line}\s+\S", text, re.MULTILINE):
                    found.append(f"{name}: its contract lacks {line}")
    return found


def weak_tests(tests: Path) -> list[str]:
    """No test expects just any error."""
    weak = re.compile(r"raises\((?:Base)?Exception\b")
    return [
        f"{path.name}: {match}"
        for path in sorted(tests.rglob("*.py"))
        for match in weak.findall(path.read_text("utf-8"))
    ]
