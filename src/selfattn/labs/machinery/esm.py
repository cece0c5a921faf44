"""One ES module out of several: the text that a lab runs as.

A lab's script imports from this folder (`core.js`, `controls.js`). A notebook
and a page opened from disk can only run one module, given as text.
`module_text` joins them: imported files first, each once, without their
import and export words. Where there is no script of a name but a table,
``x.json``, it is taken for a script that exports it as `STORED`. It is no
bundler: it understands two forms of import and export, which the labs are
written in, and refuses every other.

Needs the standard library alone, so that the site is built without torch.
"""

import re
from pathlib import Path

LABS = Path(__file__).parents[1]
STYLE = "machinery/lab.css"  # every lab's

IMPORT = re.compile(
    r'^import \{\s*([\w\s,]*?),?\s*\} from "\./([\w/-]+)\.js";\n', re.MULTILINE
)
EXPORT = re.compile(
    r"^export (?=(?:async function|function|const|class)\b)", re.MULTILINE
)
NAME = re.compile(
    r"^(export )?(?:async function|function|const|let|class) ([\w$]+)",
    re.MULTILINE,
)
LEFT_OVER = re.compile(
    r"^\s*(?:import\b|export\b(?! default\b)).*|.*\bimport\s*\(.*",
    re.MULTILINE,
)
DEFAULT = re.compile(r"^export default\b", re.MULTILINE)


def module_text(stem: str, folder: Path = LABS) -> str:
    """The lab's script and all that it imports, as one ES module.

    Args:
        stem: the script's name without ``.js``, for example "dot_product".
        folder: where the scripts lie.

    Raises:
        ValueError: if a file is missing, imports a name that its neighbour
            does not export, declares a name that another file has too, or
            imports or exports in a form that is not understood.
    """
    parts: dict[str, str] = {}
    owners: dict[str, str] = {}
    _collect(stem, folder, parts, owners, stack=())
    for name, text in parts.items():
        if name != stem and DEFAULT.search(text):
            raise ValueError(
                "only the lab's own script may have an export default, but "
                f"{name}.js has one too"
            )
    return "\n".join(parts.values())


def _collect(
    stem: str,
    folder: Path,
    parts: dict[str, str],
    owners: dict[str, str],
    stack: tuple[str, ...],
) -> None:
    """Add the script's imports, then the script itself, to ``parts``."""
    if stem in parts:
        return
    if stem in stack:
        circle = " → ".join((*stack, stem))
        raise ValueError(f"scripts may not import in a circle, but {circle}")
    text = _read(stem, folder)
    for names, neighbour in IMPORT.findall(text):
        beside = (Path(stem).parent / neighbour).as_posix()
        _collect(beside, folder, parts, owners, (*stack, stem))
        _check_names(names, beside, stem, folder)
    for _, name in NAME.findall(text):
        if owners.setdefault(name, stem) != stem:
            raise ValueError(
                "joined scripts share one scope, so a name may be declared "
                f"once, but {name} is in {owners[name]}.js and {stem}.js"
            )
    parts[stem] = _without_imports(stem, text)


def _read(stem: str, folder: Path) -> str:
    path = folder / f"{stem}.js"
    table = path.with_suffix(".json")
    if not path.is_file() and table.is_file():
        return f"export const STORED = {table.read_text('utf-8').strip()};\n"
    if not path.is_file():
        raise ValueError(f"there is no lab script {stem}.js")
    return path.read_text(encoding="utf-8")


def _check_names(names: str, neighbour: str, stem: str, folder: Path) -> None:
    found = NAME.findall(_read(neighbour, folder))
    exported = {name for export, name in found if export}
    for name in (part.strip() for part in names.split(",")):
        if name not in exported:
            raise ValueError(
                f"{stem}.js imports {name!r} from {neighbour}.js, which "
                f"exports {', '.join(sorted(exported)) or 'nothing'}"
            )


def _without_imports(stem: str, text: str) -> str:
    text = EXPORT.sub("", IMPORT.sub("", text))
    strange = LEFT_OVER.search(text)
    if strange:
        raise ValueError(
            'only `import { a } from "./b.js";`, `export function`, `export '
            "const`, `export class` and `export default` are understood, but "
            f"{stem}.js has: {strange[0].strip()}"
        )
    return text
