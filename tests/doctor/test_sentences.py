"""No sentence that is displayed steers anything: in capitals all is the same.

What the doctor says of probes, facts, kinds and mistakes is made capitals as
soon as it is written; then everything is built and examined once more.
"""

import json
import subprocess
import sys

IN_CAPITALS = """
from selfattn.doctor import exercise, kind, probes

def capitals(x):
    if isinstance(x, str):
        return x.upper()
    return {name: capitals(value) for name, value in x.items()}

def write_in_capitals(of, *fields):
    write = of.__init__

    def __init__(self, *arguments, **named):
        write(self, *arguments, **named)
        for field in fields:
            found = capitals(getattr(self, field))
            object.__setattr__(self, field, found)

    of.__init__ = __init__

write_in_capitals(probes.Probe, "claim")
write_in_capitals(exercise.Mistake, "name", "symptom", "cause", "cure")
write_in_capitals(exercise.Exercise, "asks", "optional")
write_in_capitals(kind.Fact, "meaning", "options")
write_in_capitals(kind.Kind, "does")
write_in_capitals(kind.Reading, "lacks")
"""

EVERYTHING = """
import json
import torch
from torch import nn
from selfattn import MultiHeadAttention, attention
from selfattn.doctor import examine
from selfattn.doctor.kinds import kinds
from selfattn.doctor.self_test import banks, names_given

def built(bank):
    named = [mistake.name for mistake in bank.mistakes]
    ruled = {
        fact: {str(x): rule and rule.name for x, rule in outcomes.items()}
        for fact, outcomes in bank.conventions.items()
    }
    asked = [
        (p.claim, p.needs, p.convention, p.fixed, {**p.sizes}, str(p.dtype))
        for p in bank.probes
    ]
    return [bank.asks, named, ruled, asked, {**bank.optional}]

def nan_in_empty_rows(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v

def flipped(q, k, v, mask=None):
    return attention(q, k, v, mask=None if mask is None else ~mask)

def two_at_once(q, k, v, causal=False):
    return (q @ k.mT).softmax(-2) @ v

class Averaging(MultiHeadAttention):
    def forward(self, x):
        return super().forward(x).mean(1, keepdim=True).expand_as(x)

def reports():
    for thing, kind, told in (
        (nan_in_empty_rows, "attention", {}),
        (nan_in_empty_rows, "attention", {"empty_row": "zeros"}),
        (nan_in_empty_rows, "attention", {"takes": ["mask"]}),
        (flipped, "attention", {}),
        (flipped, "attention", {"mask": "keep"}),
        (two_at_once, "efficient", {"square": True}),
        (Averaging(12, 3), "self-attention", {"causal": False}),
        (MultiHeadAttention(12, 3), "self-attention", {"formula": "own"}),
        (nn.RMSNorm(8), "rms-norm", {}),
        (lambda n: torch.ones(n, n).tril(), "causal-mask", {"mask": "ones"}),
    ):
        report = examine(thing, kind=kind, time_limit=None, **told)
        yield report.to_json()

found = banks()
small = ("softmax", "causal-mask", "layer-norm")
print(json.dumps([
    {name: built(bank) for name, bank in found.items()},
    [[kind.does, *(f.meaning for f in kind.facts.values())]
     for kind in kinds().values()],
    {name: names_given(found[name]) for name in small},
    list(reports()),
]))
"""


def test_what_is_written_in_capitals_is_built_and_found_alike():
    plain, loud = (
        subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        for script in (EVERYTHING, IN_CAPITALS + EVERYTHING)
    )
    quiet, capitals = (child.communicate()[0] for child in (plain, loud))
    assert plain.returncode == loud.returncode == 0
    assert quiet != capitals
    for one, other in zip(
        json.loads(quiet), json.loads(capitals), strict=True
    ):
        assert in_capitals(one) == in_capitals(other)


def in_capitals(found):
    """Whatever was found, with all its words in capitals."""
    return json.dumps(found, ensure_ascii=False).upper()
