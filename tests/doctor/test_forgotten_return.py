"""Who forgot a ``return`` is told so; who has written nothing yet is not."""

import pytest
from torch import nn

from selfattn.doctor import examine

FORGOTTEN = "is a `return` missing?"


def attention(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores.softmax(dim=-1) @ v


def to_come(q, k, v): ...


@pytest.mark.parametrize(
    ("thing", "forgotten"), [(attention, True), (to_come, False)]
)
def test_who_forgot_a_return_is_told_so(thing, forgotten):
    """Both were not answered yet, and no word more."""
    report = examine(thing, kind="attention")
    assert report.exit_code == 2 and not report.findings
    assert report.unanswered.startswith("Not answered yet")
    assert (FORGOTTEN in report.unanswered) == forgotten


class Layer(nn.Module):
    def __init__(self, returns=lambda y: None):
        super().__init__()
        self.multihead = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm, self.returns = nn.LayerNorm(8), returns

    def attend(self, x):
        return self.multihead(x, x, x)[0]

    def forward(self, x):
        return self.returns(self.attend(x))


class Block(Layer):
    def __init__(self):
        super().__init__()
        self.last = nn.LayerNorm(8)
        self.mlp = nn.Sequential(nn.Linear(8, 9), nn.ReLU(), nn.Linear(9, 8))

    def forward(self, x):
        x = x + self.attend(self.norm(x))
        return self.returns(x + self.mlp(self.last(x)))


@pytest.mark.parametrize(
    ("thing", "facts"),
    [
        (Layer(), {"kind": "self-attention", "layout": "BND"}),
        (Block(), {"kind": "encoder-block"}),
    ],
)
def test_so_is_a_module_that_forgot_it(thing, facts):
    """It was ill: None has no attribute that was looked for."""
    report = examine(thing, **facts)
    assert report.exit_code == 2 and not report.findings
    assert FORGOTTEN in report.unanswered


def test_who_returns_none_at_times_alone_is_ill():
    sometimes = Layer(lambda y: None if y.shape[1] > 1 else y)
    report = examine(sometimes, kind="self-attention", layout="BND")
    assert report.exit_code == 1 and report.findings
