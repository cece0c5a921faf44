"""What is handed over as it was written: in training, as a class, in a file.

Sound ones were called ill, and ill ones were passed over.
"""

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from selfattn.doctor import examine
from selfattn.doctor.door.things import words_of


class Attention(nn.Module):
    """With the dropout that everybody writes."""

    def __init__(self, p=0.5):
        super().__init__()
        self.dropout = nn.Dropout(p)

    def forward(self, q, k, v, mask=None):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return self.dropout(scores.softmax(dim=-1)) @ v


class Unscaled(Attention):
    def forward(self, q, k, v, mask=None):
        return super().forward(q * q.shape[-1] ** 0.5, k, v, mask)


@pytest.mark.parametrize("thing", [Attention(), Attention], ids=str)
def test_attention_is_examined_as_it_is_used(thing):
    """Its dropout never ended, it was said; a class was called as if it were
    the function that one of it is.
    """
    report = examine(thing, kind="attention", mask="keep")
    assert report.exit_code == 0, str(report)
    if isinstance(thing, nn.Module):
        assert thing.training


def test_a_mistake_in_a_module_or_its_class_is_named_still():
    for thing in (Unscaled(), Unscaled):
        report = examine(thing, kind="attention", mask="keep")
        assert report.exit_code == 1 and "scal" in str(report)


def test_a_class_that_cannot_be_made_of_nothing_is_asked_for_one():
    class Tempered(Attention):
        def __init__(self, temperature):
            super().__init__()

    report = examine(Tempered, kind="attention")
    assert report.exit_code == 2
    assert "temperature" in report.trouble


def ended(tmp_path, text):
    """The code and the words of the command on a file."""
    path = tmp_path / "theirs.py"
    path.write_text(text, "utf-8")
    command = [sys.executable, "-m", "selfattn.doctor", str(path)]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=120
    )
    return done.returncode, done.stdout


def test_a_module_of_queries_keys_and_values_is_found_in_a_file(tmp_path):
    """It looked like nothing, and the command ended as if all were well."""
    code, said = ended(
        tmp_path,
        """
from torch import nn
class Attention(nn.Module):
    def forward(self, q, k, v):
        return (q @ k.mT).softmax(-2) @ v
""",
    )
    assert code in (1, 3) and "it takes q, k and v" in said


def test_who_uses_the_softmax_of_pytorch_does_not_use_ours(tmp_path):
    """It was left out, since attention, which is healthy, had its name."""
    code, said = ended(
        tmp_path,
        """
import torch.nn.functional as F
def softmax(x):
    return x.exp() / x.exp().sum(0)
def attention(q, k, v):
    return F.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v
""",
    )
    assert code == 1 and "left out" not in said


def test_names_are_those_that_are_looked_up_in_the_module():
    def uses(x):
        return F.softmax(x.relu(), dim=-1) + next(ended(x) for _ in x)

    assert words_of(uses) == {"F", "ended", "next"}
