"""The package that is built from this tree."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_built_package_holds_the_labs_and_its_types_and_no_test(tmp_path):
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet"]
    offline = ["--no-build-isolation", "--no-index", "--wheel-dir", tmp_path]
    subprocess.run([*pip, *offline, ROOT], check=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for kind in ("*.py", "*.js", "py.typed")
        for path in source.rglob(kind)
    }
    core = "selfattn/labs/machinery/core.js"
    assert {"selfattn/py.typed", core} <= wanted
    kept = {n for n in names if ".dist-info/" not in n}
    assert wanted <= kept
    assert {n.split("/")[0] for n in kept} == {"selfattn"}
    assert not [n for n in kept if "test_" in n]
    assert [n for n in names if n.endswith("licenses/LICENSE")]
