"""Let the doctor examine code that is sound: it must say so. And what is ill.

    python -m tools.measure.doctor.audit             200 configurations a peer
    python -m tools.measure.doctor.audit --each 5    fewer
    python -m tools.measure.doctor.audit --peer Swin so named
    python -m tools.measure.doctor.audit --ill       those that are ill, alone

The result goes to ``book/measurements/doctor-audit.json``. A peer is a class
or function of a library that many use, in sizes and settings drawn by a seed;
peers whose library is not installed are left out, and named. What is found
to be ill counts as a false alarm unless the peer was expected to be so; what
differs from this book's conventions is written down as what it does.

The packages that are ill are listed in ``ill.py``. They are optional:
one that is not installed here is named, and what was found of it before, with
the version it was found in, stays as it is.
"""

import argparse
import importlib
import importlib.metadata
import json
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch

from selfattn.doctor import Report, examine
from tools.measure.doctor.ill import ILL
from tools.measure.doctor.peer import Peer
from tools.measure.doctor.sound import PEERS
from tools.measure.provenance import RESULTS, provenance

EACH = 200
EACH_ILL = 20
MODULES = {"pytorch-fast-transformers": "fast_transformers"}
PATH = RESULTS / "doctor-audit.json"
WRONG = ("false alarms", "not so called")  # one of them in every table


def installed(peer: Peer) -> str:
    """The version of a peer's library, or nothing if it cannot be used."""
    try:
        module = peer.package.replace("-", "_")
        importlib.import_module(MODULES.get(peer.package, module))
        return importlib.metadata.version(peer.package)
    except (
        ImportError,
        RuntimeError,
        importlib.metadata.PackageNotFoundError,
    ):
        return ""


def visits(peer: Peer, each: int) -> Iterator[tuple[dict[str, Any], Report]]:
    """Examine a peer in as many configurations, the same every time.

    What is ill is examined once in each: some leave nothing to be drawn.
    """
    drawn: list[dict[str, Any]] = []
    for seed in range(each):
        draw = random.Random(f"{peer.name} {seed}")
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            thing, facts, setting = peer.make(draw)
        if peer in ILL and setting in drawn:
            continue
        drawn.append(setting)
        report = examine(thing, kind=peer.kind, time_limit=None, **facts)
        yield setting, report


def verdict(report: Report) -> str:
    """What a report comes to, in a word or two."""
    if report.passed:
        return "healthy"
    if report.mistake is not None:
        return report.mistake.name
    if report.likeness is not None:
        return f"like {report.likeness.name}"
    return report.question or report.trouble or "ill, without a name"


def audit(name: str, each: int = EACH) -> dict[str, Any]:
    """Examine one peer and sum up."""
    torch.set_num_threads(1)
    (peer,) = (one for one in (*PEERS, *ILL) if one.name == name)
    verdicts: Counter[str] = Counter()
    remarks: Counter[str] = Counter()
    not_asked: Counter[str] = Counter()
    alarms, probes = [], 0
    for setting, report in visits(peer, each):
        verdicts[verdict(report)] += 1
        remarks.update(mistake.name for mistake in report.remarks)
        not_asked.update(report.not_asked.keys())
        probes += report.probes
        if verdict(report) not in right(peer):
            alarms.append({"setting": setting, "report": str(report)})
    return {
        "library": f"{peer.package} {installed(peer)}",
        "kind": peer.kind,
        "configurations": verdicts.total(),
        "probes": probes,
        "verdicts": dict(verdicts.most_common()),
        "does otherwise": dict(remarks.most_common()),
        "not asked": dict(not_asked.most_common()),
        "expected": peer.expected,
        "note": peer.note,
        ("not so called" if peer in ILL else "false alarms"): alarms,
    }


def right(peer: Peer) -> tuple[str, ...]:
    """What may be said of a peer; what is ill is not to be called healthy."""
    called = peer.expected
    return (called, f"like {called}") if peer in ILL else ("healthy", called)


def before() -> dict[str, Any]:
    """What was found of those that are ill when they were installed."""
    if not PATH.exists():
        return {}
    found: dict[str, Any] = json.loads(PATH.read_text("utf-8")).get("ill", {})
    return found


def all_examined(peers: list[Peer], each: int, processes: int) -> dict:
    """The tables of peers, by their names; each is told as it is done."""
    names = [peer.name for peer in peers]
    with ProcessPoolExecutor(processes) as pool:
        tables = pool.map(audit, names, [each] * len(names))
        found = dict(zip(names, tables, strict=True))
    for name, table in found.items():
        wrong = next(what for what in WRONG if what in table)
        n = len(table[wrong])
        print(f"{name}, {table['library']}: {table['verdicts']}, {n} {wrong}")
    return found


def main() -> None:
    """Examine all peers and write down what came out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--each", type=int, default=EACH)
    parser.add_argument("--peer", default="", help="part of a peer's name")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--print", action="store_true", help="write nothing")
    parser.add_argument("--ill", action="store_true", help="those alone")
    chosen = parser.parse_args()
    torch.set_num_threads(1)  # as in each process, and as is written down
    peers = [] if chosen.ill else [p for p in PEERS if chosen.peer in p.name]
    patients = [peer for peer in ILL if chosen.peer in peer.name]
    here = {p.package for p in (*peers, *patients) if installed(p)}
    absent = sorted({p.package for p in peers} - here)
    found = all_examined(
        [p for p in peers if p.package in here], chosen.each, chosen.processes
    )
    of_ill = all_examined(
        [p for p in patients if p.package in here],
        min(chosen.each, EACH_ILL),
        chosen.processes,
    )
    if absent:
        print(f"Left out, as they are not installed: {', '.join(absent)}")
    for peer in patients:
        if peer.package not in here:
            print(f"{peer.name}: {peer.package} is not installed; skipped")
    if not (chosen.print or chosen.peer):
        write_down(found, of_ill, absent, chosen)
    tables = (*found.values(), *of_ill.values())
    raise SystemExit(any(table.get(w) for table in tables for w in WRONG))


def write_down(
    found: dict, of_ill: dict, absent: list[str], chosen: argparse.Namespace
) -> None:
    """Write what came out, and keep what was not asked."""
    known = json.loads(PATH.read_text("utf-8")) if PATH.exists() else {}
    kept = {**before(), **of_ill}
    ill = {peer.name: kept[peer.name] for peer in ILL if peer.name in kept}
    if chosen.ill:
        text = json.dumps({**known, "ill": ill}, indent=1, ensure_ascii=False)
        PATH.write_text(text + "\n", "utf-8")
        return
    whole = {
        "about": "What the doctor says of code that is sound, "
        f"{chosen.each} configurations each.",
        "command": "make doctor-audit",
        "provenance": provenance(),
        "absent": absent,
        "peers": found,
        "ill": ill,
    }
    text = json.dumps(whole, indent=1, ensure_ascii=False)
    PATH.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
