"""Train the chapter's language model, and write what its lab shows.

    python -m tools.measure.experiments._next_letters

The scores of the next letter after a few beginnings go to
``src/selfattn/labs/models_scores.js``, which the lab reads in both languages.
"""

import json
from itertools import islice

import torch

from selfattn.data import language
from selfattn.labs.models import PLACE, STARTS
from tools.measure.experiments import models

SEED, RATE, STEPS = 0, 0.003, 400
HEAD = """\
// What a trained model expects after a few beginnings: its scores of all
// letters. Written by tools/measure/experiments/_next_letters.py.
"""


def trained() -> torch.nn.Module:
    """The Transformer of the experiments, at its largest budget."""
    torch.manual_seed(SEED)
    model, losses, _ = models.language_task("Transformer", SEED, RATE)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for loss in islice(losses, STEPS):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def scores(model: torch.nn.Module) -> dict[str, list[float]]:
    """The scores of the letter that comes next, to two places."""
    found = {}
    for start in STARTS:
        row = model(language.encode(start)[None])[0, -1]
        found[start] = [round(x, 2) for x in row.double().tolist()]
    return found


def in_lines(row: list[float]) -> str:
    """A row of numbers, eleven a line."""
    lines = [row[i : i + 11] for i in range(0, len(row), 11)]
    return ",\n".join(f"    {json.dumps(line)[1:-1]}" for line in lines)


def written(found: dict[str, list[float]]) -> str:
    """The module of the lab, a beginning a line."""
    rows = ",\n".join(
        f"  {json.dumps(start)}: [\n{in_lines(row)}\n  ]"
        for start, row in found.items()
    )
    letters = json.dumps(language.CHARACTERS)
    return (
        f"{HEAD}\nexport const LETTERS = {letters};\n"
        f"export const SCORES = {{\n{rows}\n}};\n"
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    PLACE.write_text(written(scores(trained())), encoding="utf-8")
    print(PLACE.name)
