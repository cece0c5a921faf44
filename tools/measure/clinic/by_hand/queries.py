"""What sound layers with formulas of their own make, query by query.

Each formula takes a layer, how many heads it has, what one text is called
with, the place of a query, and which keys this query sees.
"""

import torch

from tools.measure.clinic.by_hand import (
    across,
    measured_across,
    measured_within,
    within,
)
from tools.measure.clinic.inputs import SORTS

OWN = (
    across.ACROSS
    | within.WITHIN
    | measured_across.ACROSS
    | measured_within.WITHIN
)


def of_text(described, given, text):
    """What a layer is called with, for one text of the batch alone."""
    mine = {}
    for name, words in described.items():
        axes = [word for word in words.split() if word not in SORTS]
        name = name.rstrip("?")
        if name not in given:
            continue
        if words.startswith("="):
            mine[name] = mine[words[1:]]
        elif "b" in axes:
            mine[name] = given[name].select(axes.index("b"), text)
        else:  # a flag, or what all texts share
            mine[name] = given[name]
    return mine


def by_query(name, module, n_heads, described, given, seen):
    """What a layer makes of a call: (batch, queries, features)."""
    texts = []
    for text, rows in enumerate(seen):
        mine = of_text(described, given, text)
        said = [
            OWN[name](module, n_heads, mine, i, row)
            for i, row in enumerate(rows)
        ]
        texts.append(torch.stack(said))
    return torch.stack(texts)
