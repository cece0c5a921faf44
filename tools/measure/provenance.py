"""Where the numbers come from, and how a ledger of them is written."""

import json
import platform
import subprocess
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "book" / "measurements"


def provenance() -> dict[str, str | int]:
    """What a reader needs to know about where the numbers come from."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "processor": processor(),
        "threads": torch.get_num_threads(),
    }


def processor() -> str:
    """The processor's name, family and cache, where the system tells them.

    A rented machine's name alone may stand for many that differ.
    """
    listed = Path("/proc/cpuinfo")
    text = listed.read_text("utf-8") if listed.is_file() else ""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    told = {name.strip(): value.strip() for name, value in pairs}
    names = ("model name", "cpu family", "model", "cache size")
    known = [told[name] for name in names if name in told]
    return ", ".join(known) or platform.processor() or "unknown"


def as_json(result: dict) -> str:
    """JSON with one run a line, so that a difference can be read."""
    head = json.dumps({**result, "runs": []}, indent=1)
    runs = ",\n  ".join(json.dumps(run) for run in result["runs"])
    return head.replace('"runs": []', f'"runs": [\n  {runs}\n ]') + "\n"
