"""A lab's scripts are joined into one module, or refused."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from selfattn.labs.dot_product import DotProductLab
from selfattn.labs.machinery import esm

ESM = Path(esm.__file__)


def test_the_joiner_needs_no_torch():
    spec = importlib.util.spec_from_file_location("esm", ESM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.module_text("dot_product")
    assert text == DotProductLab()._esm
    tree = ast.parse(ESM.read_text("utf-8"))
    imported = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported == {"re", "pathlib"}


@pytest.mark.parametrize(
    ("scripts", "message"),
    [
        ({}, "there is no lab script main.js"),
        ({"main": 'import { a } from "./b.js";\n'}, "no lab script b.js"),
        (
            {"main": 'import { a } from "./in/b.js";\n'},
            "no lab script in/b.js",
        ),
        (
            {"main": 'import { a } from "./b.js";\n', "b": "const a = 1;\n"},
            "main.js imports 'a' from b.js, which exports nothing",
        ),
        (
            {
                "main": 'import { a } from "./b.js";\nconst c = 1;\n',
                "b": "export const a = 1;\nconst c = 2;\n",
            },
            "c is in b.js and main.js",
        ),
        (
            {
                "main": 'import { a } from "./b.js";\n',
                "b": 'import { c } from "./main.js";\nexport const a = 1;\n',
            },
            "main → b → main",
        ),
        (
            {
                "main": 'import { a } from "./b.js";\n',
                "b": "export const a = 1;\nexport default a;\n",
            },
            "b.js has one too",
        ),
        ({"main": 'import a from "./b.js";\n'}, "main.js has: import a"),
        ({"main": 'import "./b.js";\n'}, "main.js has: import"),
        ({"main": 'export * from "./b.js";\n'}, "main.js has: export *"),
        ({"main": "export let a = 1;\n"}, "main.js has: export let"),
        ({"main": 'const a = await import("x");\n'}, "main.js has: const a"),
        (
            {"main": 'import { a as c } from "./b.js";\n', "b": "\n"},
            "main.js imports 'a as c' from b.js",
        ),
    ],
)
def test_the_joiner_refuses_what_it_does_not_know(tmp_path, scripts, message):
    for name, text in scripts.items():
        (tmp_path / f"{name}.js").write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        esm.module_text("main", tmp_path)


def test_the_joiner_puts_each_script_in_once(tmp_path):
    for name, text in {
        "main": 'import { b } from "./b.js";\nimport { c } from "./c.js";\n'
        "export default [b, c];\n",
        "b": 'import {\n  c,\n} from "./c.js";\nexport const b = [c];\n',
        "c": "export const c = 1;\n",
    }.items():
        (tmp_path / f"{name}.js").write_text(text)
    assert esm.module_text("main", tmp_path) == (
        "const c = 1;\n\nconst b = [c];\n\nexport default [b, c];\n"
    )


def test_an_import_is_looked_for_beside_the_script_that_asks(tmp_path):
    (tmp_path / "in").mkdir()
    for name, text in {
        "main": 'import { b } from "./in/b.js";\nexport default b;\n',
        "in/b": 'import { c } from "./c.js";\nexport const b = c;\n',
        "in/c": "export const c = 1;\n",
        "c": "export const other = 2;\n",
    }.items():
        (tmp_path / f"{name}.js").write_text(text)
    assert esm.module_text("main", tmp_path) == (
        "const c = 1;\n\nconst b = c;\n\nexport default b;\n"
    )


def test_a_table_is_taken_for_a_script_that_exports_it(tmp_path):
    main = 'import { STORED } from "./b.js";\nexport default STORED;\n'
    (tmp_path / "main.js").write_text(main)
    (tmp_path / "b.json").write_text('{"a": [1]}\n')
    assert esm.module_text("main", tmp_path) == (
        'const STORED = {"a": [1]};\n\nexport default STORED;\n'
    )
    (tmp_path / "b.js").write_text("export const STORED = 2;\n")
    assert "const STORED = 2" in esm.module_text("main", tmp_path)
