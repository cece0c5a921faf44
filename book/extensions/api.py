"""What the package offers: signatures and docstrings, read from its source.

The directive ``api`` writes them, a section a module. They are read as text,
so that nothing of the package runs when the site is built.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from docstrings import drawn, inline, joined
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

PACKAGE = "src/selfattn"
# Figures and labs draw the chapters; the doctor has a chapter of its own.
LEFT_OUT = {"plots", "labs", "doctor"}


def modules(package: Path) -> Iterator[tuple[str, Path]]:
    """Each module with something public in it: its name and its file."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if LEFT_OUT & {*parts} or parts[-1][0] == "_":
            continue
        yield ".".join(("selfattn", *parts)), path


def public(text: str) -> Iterator[tuple[str, str]]:
    """Signature and docstring of what a module defines for others."""
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        said = ast.get_docstring(node)
        if said and node.name[0] != "_":
            yield signature(node), said


def signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    """How it is called, a line an argument where one line is too long."""
    call, word = node, "def"
    if isinstance(node, ast.ClassDef):
        word = "class"
        inits = [
            part
            for part in node.body
            if isinstance(part, ast.FunctionDef) and part.name == "__init__"
        ]
        if not inits:
            return f"class {node.name}"
        call = inits[0]
    given = ast.unparse(call.args).removeprefix("self, ").removeprefix("self")
    returns = ""
    if word == "def" and call.returns:
        returns = f" -> {ast.unparse(call.returns)}"
    said = f"{word} {node.name}({given}){returns}"
    return re.sub(r"(\w, ') ", r"\1", said)  # jaxtyping: one axis, ' n'


class Api(Directive):
    """Every module, a section each."""

    def run(self) -> list[nodes.Node]:
        """Read the package anew."""
        env = self.state.document.settings.env
        content: list[nodes.Node] = []
        for name, path in modules(Path(env.srcdir, PACKAGE)):
            env.note_dependency(str(path))
            text = path.read_text("utf-8")
            found = list(public(text))
            if not found:
                continue
            section = nodes.section(ids=[name.replace(".", "-")])
            section += nodes.title("", name)
            about = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
            section += nodes.paragraph("", "", *inline(joined(about)))
            for call, said in found:
                head = nodes.literal_block(call, call, language="python")
                head["classes"].append("api-call")
                section += head
                section += nodes.container(
                    "", *drawn(said), classes=["api-said"]
                )
            content.append(section)
        return content


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about the directive."""
    app.add_directive("api", Api)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
