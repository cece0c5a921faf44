"""What the doctor calls each mistake that it knows, written for the book.

    python -m tools.measure.doctor.confusion

For every kind, and every claim that it may be held to: each mistake, and the
name under which it was found. `tests/doctor/test_kinds.py` compares.
"""

import json
import sys

import torch

from selfattn.doctor.self_test import confusion
from tools.measure.provenance import RESULTS


def main() -> int:
    """Write the table, say how many are called right, fail if one is not."""
    torch.set_num_threads(1)
    table = confusion()
    known = [
        (mine, given)
        for bank in table.values()
        for mine, given in bank.items()
    ]
    right = sum(mine == given for mine, given in known)
    ledger = {
        "about": "For every kind and every mistake of its bank: the name that "
        "the doctor gave it.",
        "command": "python -m tools.measure.doctor.confusion",
        "mistakes": len(known),
        "named_right": right,
        "names": table,
    }
    path = RESULTS / "doctor-confusion.json"
    text = json.dumps(ledger, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    print(f"{right} of {len(known)} mistakes are called by their names")
    return 0 if right == len(known) else 1


if __name__ == "__main__":
    sys.exit(main())
