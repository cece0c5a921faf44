"""Let the doctor examine code that is sound: it must say so.

    python tools/doctor_audit.py                 200 configurations a peer
    python tools/doctor_audit.py --each 5        fewer
    python tools/doctor_audit.py --peer swin     one peer

The result goes to ``book/measurements/doctor-audit.json``. A peer is a class
or function of a library that many use, in sizes and settings drawn by a seed;
peers whose library is not installed are left out, and named. What is found
to be ill counts as a false alarm unless the peer was expected to be so; what
differs from this book's conventions is written down as what it does.
"""

import argparse
import importlib
import importlib.metadata
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from audited import PEERS, Peer
from experiments import RESULTS, provenance

from selfattn.doctor import Report, examine

EACH = 200
PATH = RESULTS / "doctor-audit.json"


def installed(peer: Peer) -> str:
    """The version of a peer's library, or nothing if it cannot be used."""
    try:
        importlib.import_module(peer.package.replace("-", "_"))
        return importlib.metadata.version(peer.package)
    except (
        ImportError,
        RuntimeError,
        importlib.metadata.PackageNotFoundError,
    ):
        return ""


def visits(peer: Peer, each: int) -> Iterator[tuple[dict[str, Any], Report]]:
    """Examine a peer in as many configurations, the same every time."""
    for seed in range(each):
        draw = random.Random(f"{peer.name} {seed}")
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            thing, facts, setting = peer.make(draw)
        report = examine(thing, kind=peer.kind, time_limit=None, **facts)
        yield setting, report


def verdict(report: Report) -> str:
    """What a report comes to, in a word or two."""
    if report.passed:
        return "healthy"
    if report.mistake is not None:
        return report.mistake.name
    return report.question or report.trouble or "ill, without a name"


def audit(name: str, each: int = EACH) -> dict[str, Any]:
    """Examine one peer and sum up."""
    torch.set_num_threads(1)
    (peer,) = (one for one in PEERS if one.name == name)
    verdicts: Counter[str] = Counter()
    remarks: Counter[str] = Counter()
    not_asked: Counter[str] = Counter()
    alarms, probes = [], 0
    for setting, report in visits(peer, each):
        verdicts[verdict(report)] += 1
        remarks.update(mistake.name for mistake in report.remarks)
        not_asked.update(report.not_asked.keys())
        probes += report.probes
        if verdict(report) not in ("healthy", peer.expected):
            alarms.append({"setting": setting, "report": str(report)})
    return {
        "library": f"{peer.package} {installed(peer)}",
        "kind": peer.kind,
        "configurations": each,
        "probes": probes,
        "verdicts": dict(verdicts.most_common()),
        "does otherwise": dict(remarks.most_common()),
        "not asked": dict(not_asked.most_common()),
        "expected": peer.expected,
        "note": peer.note,
        "false alarms": alarms,
    }


def main() -> None:
    """Examine all peers and write down what came out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--each", type=int, default=EACH)
    parser.add_argument("--peer", default="", help="part of a peer's name")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--print", action="store_true", help="write nothing")
    chosen = parser.parse_args()
    peers = [peer for peer in PEERS if chosen.peer in peer.name]
    absent = sorted({p.package for p in peers if not installed(p)})
    names = [peer.name for peer in peers if peer.package not in absent]
    with ProcessPoolExecutor(chosen.processes) as pool:
        tables = pool.map(audit, names, [chosen.each] * len(names))
        found = dict(zip(names, tables, strict=True))
    for name, table in found.items():
        n = len(table["false alarms"])
        print(f"{name}: {table['verdicts']}, {n} false alarms")
    if absent:
        print(f"Left out, as they are not installed: {', '.join(absent)}")
    whole = {
        "about": "What the doctor says of code that is sound, "
        f"{chosen.each} configurations each.",
        "command": "make doctor-audit",
        "provenance": provenance(),
        "absent": absent,
        "peers": found,
    }
    if not (chosen.print or chosen.peer):
        text = json.dumps(whole, indent=1, ensure_ascii=False)
        PATH.write_text(text + "\n", "utf-8")
    raise SystemExit(any(table["false alarms"] for table in found.values()))


if __name__ == "__main__":
    main()
