"""Whatever a patient holds, its copies are examined, and it stays as it is.

Of a lock, an open file or a result that was kept there is no copy. Who held
one raised, it was said, or dropped in use, which was the doctor's doing.
"""

import functools
import io
import math
import re
import threading
from pathlib import Path

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import selfattn.doctor
from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.doctor import examine
from selfattn.doctor.copying import copy_of
from selfattn.models import Decoder, Embedding
from selfattn.positions import LearnedPositions, sinusoidal

here = functools.partial(examine, time_limit=None)


class Layer(nn.Module):
    """One head of a self-attention, which drops some of what it hears."""

    def __init__(self, d=12, rate=0.0):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.drop, self.last = nn.Dropout(rate), None
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        scores = self.q(x) @ self.k(x).mT / math.sqrt(x.shape[-1])
        self.last = self.drop(scores.softmax(-1))
        return self.o(self.last @ self.v(x))


class Attention(nn.Module):
    """A function that drops, as a module."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.3)

    def forward(self, q, k, v):
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        return self.drop(scores.softmax(-1)) @ v


class RootMeanSquare(nn.Module):
    """A norm with a gain."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(8))

    def forward(self, x):
        size = x.float().square().mean(-1, keepdim=True) + 1e-6
        return (x.float() * size.rsqrt()).to(x.dtype) * self.gain


class Placed(nn.Module):
    """Texts and where their tokens stand."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", sinusoidal(50, 8))

    def forward(self, x):
        return x + self.table[: x.shape[1]]


def decoder():
    """A whole model."""
    table = Embedding(17, 12, positions=LearnedPositions(32, 12))
    blocks = [EncoderBlock(12, 3, 16, pre=True) for _ in range(2)]
    return Decoder(table, blocks, norm=nn.LayerNorm(12))


KINDS = {
    "self-attention": Layer,
    "attention": Attention,
    "encoder-block": lambda: EncoderBlock(12, 3, 24, pre=True),
    "decoder-block": lambda: DecoderBlock(12, 3, 24, pre=True),
    "language-model": decoder,
    "rms-norm": RootMeanSquare,
    "layer-norm": lambda: nn.LayerNorm(8),
    "positions": Placed,
}


class Holder:
    """What is no module, and holds what has no copy among others."""

    __slots__ = ("lock", "named")

    def __init__(self):
        self.lock, self.named = threading.Lock(), {"seen": [torch.zeros(2)]}


HELD = {
    "lock": threading.Lock,
    "file": lambda: io.TextIOWrapper(io.BytesIO()),
    "generator": lambda: (i for i in range(3)),
    "library": lambda: math,
    "result": lambda: nn.Linear(2, 2)(torch.ones(2)),
    "results": lambda: {"of": [nn.Linear(2, 2)(torch.ones(2))]},
    "holder": Holder,
}


@pytest.mark.parametrize("held", ["lock", "result"])
@pytest.mark.parametrize("kind", KINDS)
def test_who_holds_what_has_no_copy_is_examined_as_any_other(kind, held):
    torch.manual_seed(0)
    patient = KINDS[kind]()
    usual = here(patient, kind=kind)
    patient.held = HELD[held]()
    report = here(patient, kind=kind)
    assert report.exit_code == 0, report
    assert str(report) == str(usual)


@pytest.mark.parametrize("held", HELD)
def test_whatever_a_layer_holds_it_is_healthy(held):
    torch.manual_seed(0)
    patient = Layer()
    patient.part = nn.Identity()
    patient.part.held = HELD[held]()
    report = here(patient, kind="self-attention")
    assert report.passed, report


def test_a_layer_that_keeps_what_it_heard_is_examined_after_a_call():
    torch.manual_seed(0)
    patient = Layer()
    patient(torch.randn(1, 3, 12))
    assert not patient.last.is_leaf
    assert examine(patient, kind="self-attention").passed


def test_a_copy_shares_what_has_none_and_nothing_else():
    torch.manual_seed(0)
    patient = Layer()
    patient.held = holder = Holder()
    patient.same, patient.again = [holder], patient.q(torch.ones(12))
    copy = copy_of(patient)
    assert copy.held is not holder and copy.same[0] is copy.held
    assert copy.held.lock is holder.lock
    assert copy.held.named["seen"][0] is not holder.named["seen"][0]
    assert copy.again.equal(patient.again) and copy.again.is_leaf
    copy.again.zero_()
    assert patient.again.any()
    own = {id(x) for x in patient.parameters()}
    assert not any(id(x) in own for x in copy.parameters())


def test_parts_that_know_of_each_other_are_copied_together():
    patient = Layer()
    patient.part = nn.Identity()
    patient.part.whole, patient.part.lock = [patient], threading.Lock()
    copy = copy_of(patient)
    assert copy.part.whole[0] is copy is not patient
    assert copy.part.lock is patient.part.lock


class Alone:
    """A wrapper of which copying raises, as it looks for what is not yet."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_what_has_no_copy_though_its_parts_have_is_shared_within():
    patient = Layer()
    patient.held = alone = Alone(nn.Linear(2, 2))
    assert copy_of(patient).held is alone
    with pytest.raises(RecursionError):
        copy_of(alone)


def test_dropout_that_ends_is_not_blamed_on_what_has_no_copy():
    """Not copied, it was asked in training."""
    patient = Attention()
    patient.lock = threading.Lock()
    assert examine(patient, kind="attention").passed
    assert here(patient, kind="attention").passed
    assert patient.training and patient.drop.training


class Uncopied(Attention):
    """It refuses to be copied."""

    def __deepcopy__(self, known):
        raise TypeError("there is but one")


def test_who_refuses_to_be_copied_is_asked_as_it_is_used():
    patient = Uncopied()
    patient.frozen = nn.Dropout().eval()
    for limit in (None, 60):
        report = examine(patient, kind="attention", time_limit=limit)
        assert report.passed, report
        assert patient.training and patient.drop.training
        assert not patient.frozen.training


@pytest.mark.parametrize("kind", ["self-attention", "language-model"])
@pytest.mark.parametrize("training", [True, False])
def test_examined_in_this_process_it_stays_as_it_is(kind, training):
    """It had counted the doctor's calls, and kept what he gave it."""
    torch.manual_seed(0)
    patient = (
        nn.Sequential(nn.Embedding(9, 12), Layer(), nn.Linear(12, 9))
        if kind == "language-model"
        else Layer()
    ).train(training)
    before = {n: x.clone() for n, x in patient.state_dict().items()}
    here(patient, kind=kind)
    after = patient.state_dict()
    assert all(x.equal(after[n]) for n, x in before.items())
    layers = [part for part in patient.modules() if isinstance(part, Layer)]
    assert layers[0].last is None and layers[0].calls == 0
    assert all(part.training is training for part in patient.modules())


@pytest.mark.parametrize(
    "mode",
    [torch.inference_mode, FakeTensorMode, lambda: torch.device("meta")],
)
def test_a_patient_is_copied_in_no_mode_of_the_caller(mode):
    torch.manual_seed(0)
    patient = Layer()
    with mode():
        report = here(patient, kind="self-attention")
    assert report.passed, report


def test_nobody_copies_but_by_the_one_way():
    root = Path(selfattn.doctor.__file__).parent
    found = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"\bdeepcopy\(", path.read_text("utf-8"))
    ]
    assert sorted(found) == ["copying.py", "patient.py"]
